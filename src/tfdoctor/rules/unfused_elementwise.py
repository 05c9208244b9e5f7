from collections import defaultdict

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.optimizer_work import OptimizerWork

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=Healthy(summary="XLA fuses the elementwise operations on a TPU")),)

ELEMENTWISE = frozenset(
    (
        "AddV2", "Add", "AddN", "Sub", "Mul", "RealDiv", "Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log",
        "Pow", "Maximum", "Minimum", "Select", "SelectV2", "Cast", "Relu", "Relu6", "Elu", "Selu",
        "Sigmoid", "Tanh", "Softplus", "Erf", "LeakyRelu", "ReluGrad", "Relu6Grad", "EluGrad",
        "SigmoidGrad", "TanhGrad", "LeakyReluGrad", "RsqrtGrad", "SqrtGrad", "SquaredDifference",
        "BiasAdd", "GreaterEqual", "Greater", "Less", "LessEqual", "DivNoNan",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """How much elementwise work is worth compiling a step."""

    share: float = share_limit(
        0.1, "Smallest share of the compute time in elementwise operations that justifies compiling the step"
    )
    operations: float = limit(
        10.0, "Smallest number of elementwise operations per step that is reported: fewer form no chains to fuse"
    )


def check(
    operations: Operations,
    optimizer: OptimizerWork,
    hardware: Hardware,
    program: Program | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Remove the time of each elementwise operation: fusing saves that much at most."""
    rows = _elementwise(operations, optimizer, program)
    part, calls = operations.part(sum(row.ms for row in rows)), sum(row.calls for row in rows)
    if hardware.kind == DeviceKind.CPU:
        return NotApplicable(reason=f"elementwise operations take {part}; {ON_CPU}")
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    evidence = (
        *part.measures("in elementwise operations", limits.share),
        Measure("elementwise operations per step", count(calls), count(limits.operations)),
    )
    if part.share < limits.share or calls < limits.operations:
        return Healthy(summary=f"Elementwise operations take {part}", evidence=evidence)
    number = counted(round(calls), "elementwise operation")
    at = next((row.at for row in rows if row.at), None)
    return Finding(
        summary=f"{number} outside XLA take {part}",
        evidence=(*evidence, _table(rows)),
        remedies=(Remedy(COMPILE, FUSE, at, "jit-compile"),),
        effects=tuple(row.scaled(0.0, Bound.AT_MOST) for row in rows),
    )


def _elementwise(operations: Operations, optimizer: OptimizerWork, program: Program | None) -> list[OperationTime]:
    """Return the elementwise operations that no other rule counts."""
    layers = program.layers if program else ()
    norms = {layer.name for layer in layers if "BatchNorm" in layer.kind}
    return [row for row in optimizer.others(operations) if row.type in ELEMENTWISE and row.layer not in norms]


ON_CPU = "on a CPU, XLA may be slower even though it fuses them: try jit_compile=True and measure"

COMPILE = "Compile the step so that XLA fuses elementwise operations"


def _table(rows: list[OperationTime]) -> Table:
    by_type: dict[str, list[OperationTime]] = defaultdict(list)
    for row in rows:
        by_type[row.type].append(row)
    groups = ((kind, sum(row.ms for row in group), group) for kind, group in by_type.items())
    return Table.of(
        sorted(groups, key=lambda entry: (-entry[1], entry[0])),
        ("operation", lambda entry: entry[0]),
        ("calls", lambda entry: count(sum(row.calls for row in entry[2]))),
        ("time per step", lambda entry: ms(entry[1])),
    )


FUSE = "model.compile(optimizer, loss, jit_compile=True)  # or @tf.function(jit_compile=True)"
