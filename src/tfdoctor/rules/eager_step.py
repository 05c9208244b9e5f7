"""The step runs eagerly, one operation at a time.

## What it checks

The number of operations that Python runs one by one in each step, and whether they take more time than the
functions (`tf.function`, Keras' train function). A few operations outside of a function, such as a metric or
reading the loss, are not reported. Where the step is a `tf.function`, the operations beside it are named as
such: nothing of the step runs eagerly. Operations within calls such as `model.predict`, `set_weights` and
`tf.summary.histogram` are no step: slow-call reports these.

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

Users of TensorFlow 2.0 met it with `fit_generator`, which ran eagerly.

## Sources

- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [Model training APIs](https://keras.io/api/models/model_training_apis/)
- [TensorFlow issue 33024: fit_generator runs eagerly](https://github.com/tensorflow/tensorflow/issues/33024)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.host_lines import HostLines, LineWork
from tfdoctor.facts.step_time.slow_calls import SlowCalls
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Location, Measure, Remedy, Stage, Table, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "the functions that run operation by operation are not in a file of the run"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    operations: float = limit(
        20.0,
        "Smallest number of operations run one by one per step; reading a loss and updating a metric take up to 12",
    )
    call_ms: float = limit(
        0.5, "Host time in ms that is left when the step is one function; Keras' fit takes 0.4 ms on a CPU"
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
    runs = f"Python runs {eager.operations:.0f} operations"
    if few or own_ms <= eager.functions_ms:
        return Healthy(summary=f"{runs} per step outside of tf.functions", evidence=measures)
    mixed = Mixed.of(eager, lines)
    beside = f" beside {eager.beside}" if eager.beside else ""
    return Finding(
        summary=f"{runs} one by one{beside} in {breakdown.each_step}{mixed.why}",
        evidence=(*measures, Measure("host time per step", ms(breakdown[Stage.HOST])), *_evidence(eager, mixed)),
        remedies=(_remedy(eager, lines),),
        effects=tuple(_effects(eager, breakdown, mixed, limits)),
    )


OTHER = (LineWork.READING, LineWork.PYTHON)
"""Work that no graph holds."""


OUTSIDE = (
    "; code between them that reads values of tensors (float(), int(), .numpy(), NumPy) has to stay outside of the "
    "function"
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
        Operations of several lines, of which one is in no function that a line of the user's calls, are the body of
        a loop: it is no function yet, and may compute more than one training step, such as the steps of an
        environment.
        """
        if lines is None or eager.asked:
            return cls()
        host = lines.parts.get(Stage.HOST, ())
        others = [line for line in host if line.work in OTHER]
        found = [line for line in host if line.work is LineWork.OPERATIONS and line.at]
        in_loop = len({line.at for line in found}) > 1 and any(not line.caller for line in found)
        mixed = bool(others) or in_loop
        return cls(OUTSIDE, sum(line.ms for line in others)) if mixed else cls()


def _evidence(eager: EagerWork, mixed: Mixed) -> Iterator[Measure | Table]:
    """Yield what the kernels need, the function that each step calls, and the host's time outside of TensorFlow."""
    if eager.least_ms:
        label = "time in the kernels of these operations, each at its fastest"
        yield Measure(label, ms(eager.least_ms))
    if eager.step_at and not eager.asked:
        columns = ("line that defines the function of a step", "line of the loop that calls it")
        yield Table(columns, ((eager.step_at, eager.called_at or "unknown"),))
    if mixed.other_ms:
        label = "host time in lines that run no TensorFlow operation"
        yield Measure(label, ms(mixed.other_ms))


def _effects(eager: EagerWork, breakdown: Breakdown, mixed: Mixed, limits: Limits) -> Iterator[Effect]:
    """Yield what a function leaves of the host's time, and of a CPU's kernels, which then run without pauses."""
    bound = Bound.AT_MOST if mixed.why else Bound.EXPECTED
    host_ms, device_ms = breakdown[Stage.HOST], breakdown[Stage.DEVICE]
    remaining = min(1.0, (limits.call_ms + mixed.other_ms) / host_ms) if host_ms else 1.0
    yield Effect(Stage.HOST, remaining, bound=bound)
    saved = eager.operations_ms - eager.least_ms
    if eager.least_ms and device_ms and saved > 0:
        yield Effect(Stage.DEVICE, max(0.0, 1 - saved / device_ms), bound=bound)


def _remedy(eager: EagerWork, lines: HostLines | None) -> Remedy:
    if eager.beside:
        found = lines.parts.get(Stage.HOST, ()) if lines else ()
        most = (line.at for line in found if line.work is LineWork.OPERATIONS and line.at)
        return Remedy(BESIDE, at=next(most, eager.at))
    if eager.asked:
        return Remedy("Compile the model without run_eagerly=True", COMPILED, eager.at, "run-eagerly-off")
    at = eager.step_at or eager.at
    action = "Decorate the function of a step with tf.function" if eager.step_at else WRAPPED
    return Remedy(action, FUNCTION, at, "tf-function")


BESIDE = "Run the operations beside the step in a tf.function, or less often"

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
    work: EagerWork = EagerWork(525.0, 12.0, 0.0, asked=True, at=Location("train.py", 19), least_ms=4.0),
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
