"""The step runs eagerly, one operation at a time.

## What it checks

The number of operations that Python runs one by one in each step, and whether they take more time than the
functions (`tf.function`, Keras' train function). A few operations outside of a function, such as a metric or
reading the loss, are not reported. Operations within calls such as `model.predict` and `set_weights` are no step:
slow-call reports these.

## Why it matters

Each operation costs Python and the runtime tens of microseconds before it starts. Operations are not fused, and
an accelerator waits for the next one.

## How to fix

Remove `run_eagerly=True` and `tf.config.run_functions_eagerly(True)`. Wrap the step of a custom loop in a
`tf.function`: the function that the loop calls for each step, with all that it calls; to debug it, use `tf.print`,
which works there.

## Holds for

TensorFlow 2.4 and later, on all devices. What is left after the fix is an estimate: the cost of calling one
function, and on a CPU the kernels, each as fast as in the fastest traced step. That a graph fuses operations,
leaves some out and runs others side by side is not counted, so the saving shown is rather low: for eight scripts
on a busy machine with two cores it was 6 points off in the median, and at most 11 points low and 3 points high.
Where stack samples show lines of the step that read values or run other code, or operations in the body of a loop
itself, the saving is an upper bound: code that reads values has to stay outside of the function.

## Sources

- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [Model training APIs](https://keras.io/api/models/model_training_apis/)
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.host_lines import HostLine, HostLines, LineWork
from tfdoctor.facts.step_time.slow_calls import SlowCalls
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "the functions that run operation by operation are not in a file of the run"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    operations: float = limit(
        20.0,
        "Smallest number of operations run one by one per step; reading a loss and updating a metric "
        "take up to 12",
    )
    call_ms: float = limit(
        0.5,
        "Host time in ms that is left when the step is one function; Keras' fit takes 0.4 ms on a CPU",
    )


def check(
    eager: EagerWork,
    breakdown: Breakdown,
    slow: SlowCalls | None,
    lines: HostLines | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the operations that run one by one with the functions."""
    measures = (
        Measure("operations outside of tf.functions per step", count(eager.operations)),
        Measure("time in operations outside of tf.functions", ms(eager.operations_ms)),
        Measure("time in tf.functions", ms(eager.functions_ms)),
    )
    few = eager.operations < limits.operations
    own_ms = eager.operations_ms - (slow.ms if slow else 0.0)
    if few or own_ms <= eager.functions_ms:
        return Healthy(
            summary=f"Python runs {eager.operations:.0f} operations per step outside of tf.functions",
            evidence=measures,
        )
    host_ms = breakdown[Stage.HOST]
    mixed = Mixed.of(eager, lines)
    remaining = min(1.0, (limits.call_ms + mixed.other_ms) / host_ms) if host_ms else 1.0
    effects = (Effect(Stage.HOST, remaining), *_kernels(eager, breakdown[Stage.DEVICE]))
    summary = f"Python runs {eager.operations:.0f} operations one by one in {breakdown.each_step}"
    bound = Bound.AT_MOST if mixed.why else Bound.EXPECTED
    return Finding(
        summary=f"{summary}{mixed.why}",
        evidence=(
            *measures,
            Measure("host time per step", ms(host_ms)),
            *_least(eager),
            *_function(eager),
            *mixed.evidence,
        ),
        remedies=(_remedy(eager),),
        effects=tuple(replace(effect, bound=bound) for effect in effects),
    )


@dataclass(frozen=True, slots=True)
class Mixed:
    """What lies between the operations of a step: such code cannot become a part of the function."""

    why: str = ""  # a clause for the summary; "" where a function can hold the whole step
    other_ms: float = 0.0  # host time per step in lines that run no TensorFlow operation

    @classmethod
    def of(cls, eager: EagerWork, lines: HostLines | None) -> Self:
        """Find lines that read values or run other code, and operations that no function of the user's holds.

        Keras' own eager step is one function. Without stack samples nothing is known, and nothing is said.
        """
        if lines is None or eager.asked:
            return cls()
        host = lines.parts.get(Stage.HOST, ())
        other_ms = sum(line.ms for line in host if line.work in OTHER)
        if any(line.work in OTHER for line in host) or _inline(host):
            return cls(OUTSIDE, other_ms)
        return cls()

    @property
    def evidence(self) -> tuple[Measure, ...]:
        """The host's time outside of TensorFlow."""
        label = "host time in lines that run no TensorFlow operation"
        return (Measure(label, ms(self.other_ms)),) if self.other_ms else ()


OTHER = (LineWork.READING, LineWork.PYTHON)
"""Work that no graph holds."""

OUTSIDE = (
    "; code between them that reads values of tensors (float(), int(), .numpy(), NumPy) has to stay outside of the "
    "function"
)


def _inline(lines: Iterable[HostLine]) -> bool:
    """Say whether lines run operations in a loop itself, not in a function that one line of the user's calls.

    The body of such a loop is no function yet, and may compute more than one training step, such as the steps of
    an environment.
    """
    found = [line for line in lines if line.work is LineWork.OPERATIONS and line.at]
    return len({line.at for line in found}) > 1 and any(line.caller is None for line in found)


def _kernels(eager: EagerWork, device_ms: float) -> tuple[Effect, ...]:
    """Return what the kernels save on a CPU when a graph runs them without pauses; () where unknown."""
    saved = eager.operations_ms - eager.least_ms
    if not eager.least_ms or not device_ms or saved <= 0:
        return ()
    return (Effect(Stage.DEVICE, max(0.0, 1 - saved / device_ms)),)


def _least(eager: EagerWork) -> tuple[Measure, ...]:
    """Return the time that the kernels need, as evidence."""
    label = "time in the kernels of these operations, each at its fastest"
    return (Measure(label, ms(eager.least_ms)),) if eager.least_ms else ()


def _function(eager: EagerWork) -> tuple[Table, ...]:
    """Return the lines of the function that each step calls; () where the step is no function of the user's."""
    if eager.asked or eager.step_at is None:
        return ()
    columns = ("line that defines the function of a step", "line of the loop that calls it")
    return (Table(columns, ((eager.step_at, eager.called_at or "unknown"),)),)


def _remedy(eager: EagerWork) -> Remedy:
    if eager.asked:
        return Remedy(
            "Compile the model without run_eagerly=True", COMPILED, eager.at, "run-eagerly-off"
        )
    at = eager.step_at or eager.at
    action = "Decorate the function of a step with tf.function" if eager.step_at else WRAPPED
    return Remedy(action, FUNCTION, at, "tf-function")


WRAPPED = "Wrap the step in a tf.function"

COMPILED = 'model.compile(optimizer="adam", loss="mse", run_eagerly=False)'

FUNCTION = """\
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss"""


def example(
    work: EagerWork = EagerWork(
        525.0, 12.0, 0.0, asked=True, at=Location("train.py", 19), least_ms=4.0
    ),
    breakdown: Breakdown | None = None,
    slow: SlowCalls | None = None,
    lines: HostLines | None = None,
) -> Verdict:
    """A Keras model compiled with run_eagerly=True: 525 operations per step."""
    return check(work, breakdown or Breakdown.of(host=34.0, device=12.0), slow, lines)


sick = example


def healthy() -> Verdict:
    """The same model without run_eagerly: one function per step."""
    return example(EagerWork(0.0, 0.0, 3.8, asked=False), Breakdown.of(host=1.4, device=3.3))
