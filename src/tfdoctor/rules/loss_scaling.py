"""Float16 gradients are computed without loss scaling.

## What it checks

Whether the training graph computes gradients in float16 although no optimizer of the script is a
`LossScaleOptimizer` and nothing in the graph checks gradients for infinities, as manual scaling would. The
finding concerns the result of the training, not its speed. A constant factor by which the script multiplies the
loss is not recognized.

## Why it matters

The smallest normal number of float16 is 6e-5, and numbers below 6e-8 become 0: small gradients vanish and their
weights stop learning, without any message. Multiplying the loss by a large factor, and dividing the gradients
by it before they are applied, keeps them in range.

## How to fix

`fit` scales the loss under the global policy `mixed_float16`. In a custom loop wrap the optimizer in
`keras.optimizers.LossScaleOptimizer` and compute the gradients of `optimizer.scale_loss(loss)` (Keras 2:
`get_scaled_loss` and `get_unscaled_gradients`). On hardware with bfloat16, `mixed_bfloat16` needs no scaling:
it has the range of float32.

## Holds for

TensorFlow 2.4 and later, any device. The optimizer of a custom loop is only known for Keras 3. Eager steps have
no graph to check.

## Sources

- [Mixed precision, TensorFlow guide](https://www.tensorflow.org/guide/mixed_precision)
- [Loss scale optimizer, Keras 3](https://keras.io/api/optimizers/loss_scale_optimizer/)
- [Train with mixed precision, NVIDIA](https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html)
"""

from collections import Counter

from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.run.program import Operation, Program, RunSettings
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Finding, Healthy, Measure, NotApplicable, Remedy, Severity, Table, Verdict

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
BY_HAND = "the file may scale the loss already, in a way that only a reader sees"

NO_GRAPH = "the program record contains no gradients: the step runs eagerly, or the run does not train"

NO_OPTIMIZER = (
    "the optimizer that applies the float16 gradients was not recorded: in custom loops, tfdoctor records "
    "only Keras 3 optimizers"
)

MAY_SCALE = "the graph checks for infinities: the script may scale the loss without a LossScaleOptimizer"
FINITE = ("IsFinite", "IsInf", "IsNan", "CheckNumerics")
"""Operations by which a script that scales the loss checks for overflow."""

CODE = """\
optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
...
    loss = loss_fn(labels, model(batch, training=True))
    scaled = optimizer.scale_loss(loss)
gradients = tape.gradient(scaled, model.trainable_variables)
optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # divides them by the scale"""


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
    return _finding(float16, evidence, program)


def _finding(float16: list[Operation], evidence: Measure, program: Program) -> Finding:
    number = counted(len(float16), "gradient operation")
    layers = Counter(operation.layer for operation in float16).most_common()
    made = {name: layer.at for name, layer in program.layer_by_name.items()}
    table = Table.of(
        layers,
        ("layer", lambda entry: entry[0] or "no layer"),
        ("your line", lambda entry: made.get(entry[0])),
        ("float16 operations", lambda entry: count(entry[1])),
    )
    return Finding(
        summary=f"The step runs {number} in float16 without a LossScaleOptimizer: small gradients become 0",
        evidence=(evidence, table),
        remedies=(
            Remedy("Scale the loss, unless the script already multiplies it by a factor", CODE),
            Remedy("Or train in bfloat16 if the hardware supports it", BFLOAT, program.first_line),
        ),
        severity=Severity.WARNING,
    )


BFLOAT = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'


def example(
    dtype: str = "float16",
    name: str = "gradient_tape/model/dense/MatMul",
    also: str = "",
    optimizer: str | None = "SGD",
    *,
    loss_scale: bool = False,
) -> Verdict:
    """A custom loop computes float16 gradients with a plain SGD optimizer."""
    matmul = Operation(name=name, type="MatMul", outputs=((dtype, (16, 32)),), layer="dense")
    others = (Operation(name="check", type=also),) if also else ()
    settings = RunSettings(optimizer=optimizer, loss_scale=loss_scale)
    return check(Program((matmul, *others), settings=settings))


sick = example


def healthy() -> Verdict:
    """The custom loop uses a LossScaleOptimizer."""
    return example(loss_scale=True)
