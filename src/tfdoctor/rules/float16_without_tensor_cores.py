from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.terms.units import flop_rate

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(DeviceKind.CPU, DeviceKind.TPU, verdict=NotApplicable(reason="the training does not run on a GPU")),
)
BY_HAND = "the policy was chosen, and the memory may not hold the batch in float32"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which float16 matmuls and convolutions are reported."""

    share: float = share_limit(
        0.05,
        "Smallest share of the compute time in slow float16 matmuls and convolutions that is reported, as of "
        "float16-on-cpu",
    )
    reached: float = share_limit(
        0.3,
        "Smallest share of the peak rate in float32 from which float16 counts as fast enough: large products reach "
        "0.64 to 0.71 of a peak (on an H100, 2026-11-22), and the thread tells of a loss by a factor of 2 to 4",
    )


UNKNOWN_RATE = "the FLOPs of the float16 matmuls are unknown: record a step in a graph with `tfdoctor profile`"


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the rate of float16 matmuls with the peak in float32."""
    if not hardware.without_unit:
        why = hardware.missing or f"{hardware.name} has a matrix unit for 16 bits"
        return NotApplicable(reason=why)
    rows = [row for row in operations.matrix if row.precision == "float16"]
    if not rows:
        return _without_float16(operations)
    if not hardware.float32_flop_s:
        return NotApplicable(reason=f"the rate of {hardware.name} in float32 is unknown")
    known = [row for row in rows if row.flops and row.ms]
    if not known:
        return NotApplicable(reason=UNKNOWN_RATE)
    peak = hardware.float32_flop_s
    slow = [row for row in known if row.flop_s < limits.reached * peak]
    part = operations.part(sum(row.ms for row in slow or known))
    reached = sum((row.flops or 0) * row.calls for row in slow or known) / (part.ms * 1e-3)
    evidence: tuple[Evidence, ...] = (
        *part.measures("in these matmuls and convolutions", limits.share),
        Measure("FLOP rate of these in float16", flop_rate(reached)),
        Measure("peak FLOP rate of the GPU in float32", flop_rate(peak)),
        Measure("share of that peak", ratio(reached / peak), ratio(limits.reached)),
    )
    if not slow or part.share < limits.share:
        summary = f"Float16 matmuls and convolutions take {part}, as fast as float32 might"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"Float16 matmuls and convolutions take {part}, on a GPU without Tensor Cores",
        evidence=(*evidence, layer_table(slow, types=False, most=10)),
        remedies=(Remedy("Train in float32", POLICY, program.first_line if program else None),),
        effects=tuple(_effect(row, hardware, peak) for row in slow),
    )


POLICY = 'keras.mixed_precision.set_global_policy("float32")  # before the first layer is created'


def _without_float16(operations: Operations) -> Verdict:
    """Say why no float16 matmul runs."""
    if operations.matrix and not any(row.precision for row in operations.matrix):
        return NotApplicable(reason="the trace does not contain the types of the matmuls")
    if operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    return Healthy(summary="No matmul or convolution computes in float16")


def _effect(row: OperationTime, hardware: Hardware, peak: float) -> Effect:
    """Return the ceiling: the least time in float32 is that at the peak rates, with twice the bytes."""
    bandwidth = hardware.bandwidth_bytes_s
    moving_s = 2 * (row.nbytes or 0.0) / bandwidth if bandwidth else 0.0
    least_ms = max((row.flops or 0.0) / peak, moving_s) * row.calls * 1e3
    return row.scaled(min(1.0, least_ms / row.ms), Bound.AT_MOST)
