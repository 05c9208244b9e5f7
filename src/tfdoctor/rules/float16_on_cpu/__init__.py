from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.layer_times import layer_table

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
PRECONDITIONS = (
    not_on(DeviceKind.GPU, DeviceKind.TPU, verdict=NotApplicable(reason="the training does not run on a CPU")),
)
BY_HAND = "the policy was chosen, and training in float32 or bfloat16 may need other settings"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the compute time from which float16 is reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in float16 matmuls and convolutions that is reported"
    )


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Take the time of all float16 operations as the ceiling of what another type saves."""
    if not any(row.precision for row in operations.matrix):
        return _without_precision(operations)
    rows = [row for row in operations.matrix if row.precision == "float16"]
    part = operations.part(sum(row.ms for row in rows))
    measures = part.measures("in float16 matmuls and convolutions", limits.share)
    summary = f"Float16 matmuls and convolutions take {part}"
    if part.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    policy = "mixed_bfloat16" if hardware.sixteen_bit else "float32"
    code = f'keras.mixed_precision.set_global_policy("{policy}")  # before the first layer is created'
    at = program.first_line if program else None
    return Finding(
        summary=f"{summary}, on a CPU",
        evidence=(*measures, layer_table(rows, types=False, most=10)),
        remedies=(Remedy(f"Train in {policy}", code, at, "precision-policy"),),
        effects=tuple(row.scaled(0.0, Bound.AT_MOST) for row in operations.rows if _is_half(row) and row.ms),
    )


def _without_precision(operations: Operations) -> Verdict:
    """Say why no matmul of a known type runs."""
    if operations.matrix:
        return NotApplicable(reason="the trace does not contain the types of the matmuls")
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(summary="The step runs no matmul or convolution")


def _is_half(row: OperationTime) -> bool:
    """Say whether it reads or writes float16, or checks for overflow, as scaling the loss for float16 does."""
    graph = row.operation
    tensors = (*graph.inputs, *graph.outputs) if graph else ()
    return row.type == "IsFinite" or any(dtype == "float16" for dtype, _ in tensors)
