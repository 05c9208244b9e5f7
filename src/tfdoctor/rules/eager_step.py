from typing import Self

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.host_lines import HostLines, LineWork
from tfdoctor.facts.step_time.slow_calls import SlowCalls

__doc__, CODE = page(__file__)

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
    own = _own_share(slow, lines)
    few = own * eager.operations < limits.operations
    runs = f"Python runs {eager.operations:.0f} operations"
    if few or own * eager.operations_ms <= eager.functions_ms:
        return Healthy(summary=f"{runs} per step outside of tf.functions", evidence=measures)
    mixed = Mixed.of(eager, slow, lines)
    beside = f" beside {eager.beside}" if eager.beside else ""
    return Finding(
        summary=f"{runs} one by one{beside} in {breakdown.each_step}{mixed.why}",
        evidence=(*measures, Measure("host time per step", ms(breakdown[Stage.HOST])), *_evidence(eager, mixed)),
        remedies=(_remedy(eager, lines),),
        effects=tuple(_effects(eager, breakdown, mixed, own, limits)),
    )


def _own_share(slow: SlowCalls | None, lines: HostLines | None) -> float:
    """Return the part of the operations outside of slow calls, as samples show the lines that run operations."""
    called_ms = slow.part_ms(Stage.HOST) + slow.part_ms(Stage.BETWEEN) if slow else 0.0
    if slow is None or lines is None or not called_ms:
        return 1.0
    every = (line for part in lines.parts.values() for line in part if line.at not in slow.places)
    own_ms = sum(line.ms for line in every if line.work is LineWork.OPERATIONS)
    return own_ms / (own_ms + called_ms)


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
    other_ms: float = 0.0  # host time per step in slow calls, and in lines that run no TensorFlow operation

    @classmethod
    def of(cls, eager: EagerWork, slow: SlowCalls | None, lines: HostLines | None) -> Self:
        """Find lines that read values or run other code, and operations that no function of the user's holds.

        Keras' own eager step is one function. Without stack samples nothing is known, and nothing is said.
        Operations of several lines, of which one is in no function that a line of the user's calls, are the body of
        a loop: it is no function yet, and may compute more than one training step, such as the steps of an
        environment.
        """
        slow_ms = slow.part_ms(Stage.HOST) if slow else 0.0
        if lines is None or eager.asked:
            return cls(other_ms=slow_ms)
        named = slow.places if slow else ()
        host = [line for line in lines.parts.get(Stage.HOST, ()) if line.at not in named]
        others = [line for line in host if line.work in OTHER]
        found = [line for line in host if line.work is LineWork.OPERATIONS and line.at]
        in_loop = len({line.at for line in found}) > 1 and any(not line.caller for line in found)
        mixed = bool(others) or in_loop
        return cls(OUTSIDE if mixed else "", slow_ms + sum(line.ms for line in others))


def _evidence(eager: EagerWork, mixed: Mixed) -> Iterator[Measure | Table]:
    """Yield what the kernels need, the function that each step calls, and the host's time outside of TensorFlow."""
    if eager.least_ms:
        label = "time in the kernels of these operations, each at its fastest"
        yield Measure(label, ms(eager.least_ms))
    if eager.step_at and not eager.asked:
        columns = ("line that defines the function of a step", "line of the loop that calls it")
        yield Table(columns, ((eager.step_at, eager.called_at or "unknown"),))
    if mixed.other_ms:
        label = "host time in slow calls, and in lines that run no TensorFlow operation"
        yield Measure(label, ms(mixed.other_ms))


def _effects(eager: EagerWork, breakdown: Breakdown, mixed: Mixed, own: float, limits: Limits) -> Iterator[Effect]:
    """Yield what a function leaves of the host's time, and of a CPU's kernels, which then run without pauses."""
    bound = Bound.AT_MOST if mixed.why else Bound.EXPECTED
    host_ms, device_ms = breakdown[Stage.HOST], breakdown[Stage.DEVICE]
    remaining = min(1.0, (limits.call_ms + mixed.other_ms) / host_ms) if host_ms else 1.0
    yield Effect(Stage.HOST, remaining, bound=bound)
    saved = own * (eager.operations_ms - eager.least_ms)
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
    return Remedy(action, CODE["function"], at, "tf-function")


BESIDE = "Run the operations beside the step in a tf.function, or less often"

WRAPPED = "Wrap the step in a tf.function"

COMPILED = 'model.compile(optimizer="adam", loss="mse", run_eagerly=False)'
