from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


NO_GRAPH = "the program record contains no gradients: the step runs eagerly, or the run does not train"

NO_OPTIMIZER = (
    "the optimizer that applies the float16 gradients was not recorded: in custom loops, tfdoctor records "
    "only Keras 3 optimizers"
)

MAY_SCALE = "the graph checks for infinities: the script may scale the loss without a LossScaleOptimizer"
# Operations by which a script that scales the loss checks for overflow.
FINITE = ("IsFinite", "IsInf", "IsNan", "CheckNumerics")


def check(program: Program) -> Verdict:
    """Look for gradients in float16, and for what scales the loss."""
    gradients = [operation for operation in program.operations if "gradient" in operation.name]
    if not gradients:
        return NotApplicable(reason=NO_GRAPH)
    float16 = [operation for operation in gradients if any(dtype == "float16" for dtype, _ in operation.outputs)]
    evidence = Measure("gradient operations in float16", count(len(float16)))
    if not float16:
        return Healthy(summary="No gradient is computed in float16", evidence=(evidence,))
    if program.settings.loss_scale:
        return Healthy(summary="A LossScaleOptimizer scales the loss", evidence=(evidence,))
    if any(operation.type in FINITE for operation in program.operations):
        return NotApplicable(reason=MAY_SCALE)
    if not program.settings.optimizer:
        return NotApplicable(reason=NO_OPTIMIZER)
    layers = Counter(operation.layer for operation in float16).most_common()
    made = {name: layer.at for name, layer in program.layer_by_name.items()}
    table = Table.of(
        layers,
        ("layer", lambda entry: entry[0] or "no layer"),
        ("your line", lambda entry: made.get(entry[0])),
        ("float16 operations", lambda entry: count(entry[1])),
    )
    number = counted(len(float16), "gradient operation")
    return Finding(
        summary=f"The step runs {number} in float16 without a LossScaleOptimizer: small gradients become 0",
        evidence=(evidence, table),
        remedies=(
            Remedy("Scale the loss, unless the script already multiplies it by a factor", CODE["code"]),
            Remedy("Or train in bfloat16 if the hardware supports it", CODE["bfloat"], program.first_line),
        ),
        severity=Severity.WARNING,
    )
