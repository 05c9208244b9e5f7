"""The step runs operation by operation in Python.

## What it checks

How many operations Python runs one by one in each step, and whether more time goes to them than to
functions (`tf.function`, Keras' train function). A few operations beside a function (a metric, a loss
that is read) are none of it.

## Why it matters

Each operation costs Python and the runtime tens of microseconds before it does anything; nothing is
fused, and an accelerator waits for the next.

## How to fix

Take `run_eagerly=True` and `tf.config.run_functions_eagerly(True)` out again. Put the step of a custom
loop into a `tf.function`; look into it with `tf.print`, which works there.

## Holds for

TensorFlow 2.4 and later, on all devices. How much is left of the host's time afterwards is a guess: that
of calling one function. What the device gains is not counted, so the saving shown is low: where 67 % were
predicted, 87 % were measured (Keras' fit of a small network, on a CPU).

## Sources

- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [Model training APIs](https://keras.io/api/models/model_training_apis/)
"""

from dataclasses import dataclass

from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.eager_work import EagerWork
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms
from tfdoctor.verdict import (
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    operations: float = limit(
        20.0,
        "operations per step run one by one; reading a loss and updating a metric take up to 12",
    )
    call_ms: float = limit(
        0.5, "ms of the host's time that calling one function leaves; Keras' fit takes 0.4 on a CPU"
    )


LIMITS = Limits()


def check(eager: EagerWork, breakdown: Breakdown, limits: Limits = LIMITS) -> Verdict:
    """Compare what runs one by one with what runs as functions."""
    measures = (
        Measure("operations run one by one per step", count(eager.operations)),
        Measure("in them", ms(eager.operations_ms)),
        Measure("in functions", ms(eager.functions_ms)),
    )
    few = eager.operations < limits.operations
    if few or eager.operations_ms <= eager.functions_ms:
        return Healthy(
            summary=f"Python runs {eager.operations:.0f} operations per step one by one, beside its functions",
            evidence=measures,
        )
    host = breakdown[Stage.HOST]
    left = min(1.0, limits.call_ms / host) if host else 1.0
    return Finding(
        summary=f"Python runs {eager.operations:.0f} operations one by one in each step",
        evidence=(*measures, Measure("the host's part of the step", ms(host))),
        remedies=(_remedy(eager),),
        effects=(Effect(Stage.HOST, left),),
    )


def _remedy(eager: EagerWork) -> Remedy:
    if eager.asked:
        return Remedy(
            "Compile the model without run_eagerly=True", COMPILED, eager.at, "run-eagerly-off"
        )
    return Remedy("Put the step into a tf.function", FUNCTION, eager.at)


COMPILED = 'model.compile(optimizer="adam", loss="mse", run_eagerly=False)'

FUNCTION = """\
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss"""


def sick() -> Verdict:
    """A Keras model that was compiled to run eagerly: 525 operations a step."""
    eager = EagerWork(525.0, 12.0, 0.0, asked=True, at=Location("train.py", 19))
    return check(eager, Breakdown.of(host=34.0, device=12.0))


def healthy() -> Verdict:
    """The same model, compiled: one function a step."""
    return check(EagerWork(0.0, 0.0, 3.8, asked=False), Breakdown.of(host=1.4, device=3.3))
