"""Gradients are computed in float16 and the loss is not scaled.

## What it checks

Whether the training graph computes gradients in float16 while no optimizer of the script is a
`LossScaleOptimizer` and nothing in the graph checks gradients for infinities, as scaling by hand would. It
is a warning about the result of the training, not about its speed. A constant factor that the script
multiplies the loss by itself is not recognised.

## Why it matters

The smallest normal number of float16 is 6e-5, and what is below 6e-8 becomes 0: small gradients vanish and
their weights no longer learn, without any message. Multiplying the loss by a large factor, and dividing the
gradients by it before they are applied, keeps them in range.

## How to fix

`fit` scales the loss by itself under the global policy `mixed_float16`. In a custom loop wrap the optimizer in
`keras.optimizers.LossScaleOptimizer` and take the gradients of `optimizer.scale_loss(loss)` (Keras 2:
`get_scaled_loss` and `get_unscaled_gradients`). On hardware with bfloat16, `mixed_bfloat16` needs none of it:
it has the range of float32.

## Holds for

TensorFlow 2.4 and later, any device. What a custom loop's optimizer is, is known of Keras 3 only; steps that
run operation by operation have no graph to look at.

## Sources

- [Mixed precision, TensorFlow guide](https://www.tensorflow.org/guide/mixed_precision)
- [Loss scale optimizer, Keras 3](https://keras.io/api/optimizers/loss_scale_optimizer/)
- [Train with mixed precision, NVIDIA](https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html)
"""

from collections import Counter

from tfdoctor.facts.run.program import Operation, Program, RunSettings
from tfdoctor.rule import Topic
from tfdoctor.units import count
from tfdoctor.verdict import (
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"

NO_GRAPH = "the program record holds no gradients: the step runs operation by operation, or nothing was trained"

NO_OPTIMIZER = (
    "which optimizer applies the float16 gradients is not recorded; of custom loops it is for optimizers of "
    "Keras 3 alone"
)

FINITE = ("IsFinite", "IsInf", "IsNan", "CheckNumerics")
"""Whoever scales the loss checks what comes of it."""

CODE = """\
optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
...
    loss = loss_fn(labels, model(batch, training=True))
    scaled = optimizer.scale_loss(loss)
gradients = tape.gradient(scaled, model.trainable_variables)
optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # divides them again"""


def check(program: Program) -> Verdict:
    """Look for gradients in float16, and for what scales the loss."""
    gradients = [one for one in program.operations if "gradient" in one.name]
    if not gradients:
        return NotApplicable(reason=NO_GRAPH)
    narrow = [one for one in gradients if any(dtype == "float16" for dtype, _ in one.outputs)]
    evidence = (Measure("operations of the gradient in float16", count(len(narrow))),)
    if not narrow:
        return Healthy(summary="No gradient is computed in float16", evidence=evidence)
    if program.settings.loss_scale:
        return Healthy(summary="A LossScaleOptimizer scales the loss", evidence=evidence)
    if any(one.type in FINITE for one in program.operations):
        return NotApplicable(
            reason="no LossScaleOptimizer is in use, but the graph checks for infinities: the script may "
            "scale the loss by itself"
        )
    if not program.settings.optimizer:
        return NotApplicable(reason=NO_OPTIMIZER)
    return Finding(
        summary=f"{len(narrow)} operations of the gradient run in float16 and no LossScaleOptimizer is in "
        "use: small gradients become 0",
        evidence=(*evidence, _table(narrow, program)),
        remedies=(
            Remedy("Scale the loss, unless the script does it by a factor of its own", CODE),
            Remedy("Or train in bfloat16 where the hardware has it", BFLOAT, _first_line(program)),
        ),
        severity=Severity.WARNING,
    )


BFLOAT = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'


def _table(narrow: list[Operation], program: Program) -> Table:
    layers = Counter(one.layer for one in narrow)
    rows = tuple(
        (name or "no layer", _line(name, program) or "unknown", count(number))
        for name, number in layers.most_common()
    )
    return Table(("layer", "your line", "operations in float16"), rows)


def _line(name: str, program: Program) -> Location | None:
    layer = program.layer_by_name.get(name)
    return layer.at if layer else None


def _first_line(program: Program) -> Location | None:
    """Return the line of the first layer: the policy has to be set above it."""
    return next((layer.at for layer in program.layers if layer.at), None)


def sick() -> Verdict:
    """A custom loop in float16 with a plain SGD."""
    return check(_program("float16", loss_scale=False))


def healthy() -> Verdict:
    """The same loop with a LossScaleOptimizer."""
    return check(_program("float16", loss_scale=True))


def _program(dtype: str, *, loss_scale: bool) -> Program:
    product = Operation(
        name="gradient_tape/model/dense/MatMul",
        type="MatMul",
        outputs=((dtype, (16, 32)),),
        layer="dense",
    )
    return Program((product,), settings=RunSettings(optimizer="SGD", loss_scale=loss_scale))
