from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.step_time.host_lines import HostLines, SlowCalls
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.facts.step_time.timed_line import LineWork

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "the functions that run operation by operation are not in a file of the run"


@dataclass(frozen=True, slots=True)
class Limits:
    operations: float = limit(20.0)
    call_ms: float = limit(0.5)


def check(
    eager: EagerWork,
    breakdown: Breakdown,
    slow: SlowCalls | None,
    lines: HostLines | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the operations that run one by one with the functions."""
    measures = [
        Measure("operations outside of tf.functions per step", count(eager.operations)),
        Measure("time in operations outside of tf.functions", ms(eager.operations_ms)),
        Measure("time in tf.functions", ms(eager.functions_ms)),
    ]
    own = _own_share(slow, lines)
    runs = f"Python runs {eager.operations:.0f} operations"
    if own * eager.operations < limits.operations or own * eager.operations_ms <= eager.functions_ms:
        return Healthy(summary=f"{runs} per step outside of tf.functions", evidence=tuple(measures))
    host_ms, device_ms, others_ms = breakdown[Stage.HOST], breakdown[Stage.DEVICE], _others_ms(eager, slow, lines)
    bound = Bound.EXPECTED if others_ms is None else Bound.AT_MOST
    stays_ms = _slow_ms(slow, Stage.HOST) + (others_ms or 0.0)
    left = min(1.0, (limits.call_ms + stays_ms) / host_ms) if host_ms else 1.0
    effects = [Effect(Stage.HOST, left, bound=bound)]
    saved_ms = own * (eager.operations_ms - eager.least_ms)
    if eager.least_ms and device_ms and saved_ms > 0:  # a CPU's kernels then run without pauses
        effects.append(Effect(Stage.DEVICE, max(0.0, 1 - saved_ms / device_ms), bound=bound))
    evidence: list[Evidence] = [*measures, Measure("host time per step", ms(host_ms))]
    if eager.least_ms:
        label = "time in the kernels of these operations, each at its fastest"
        evidence.append(Measure(label, ms(eager.least_ms)))
    if eager.step_at and not eager.asked:
        columns = ("line that defines the function of a step", "line of the loop that calls it")
        evidence.append(Table(columns, ((eager.step_at, eager.called_at or "unknown"),)))
    if stays_ms:
        label = "host time in slow calls, and in lines that run no TensorFlow operation"
        evidence.append(Measure(label, ms(stays_ms)))
    beside = f" beside {eager.beside}" if eager.beside else ""
    return Finding(
        summary=f"{runs} one by one{beside} in {breakdown.each_step}{'' if others_ms is None else OUTSIDE}",
        evidence=tuple(evidence),
        remedies=(_remedy(eager, lines),),
        effects=tuple(effects),
    )


def _slow_ms(slow: SlowCalls | None, *parts: Stage) -> float:
    return sum(line.parts_ms.get(part, 0.0) for line in (slow.lines if slow else ()) for part in parts)


def _own_share(slow: SlowCalls | None, lines: HostLines | None) -> float:
    """Return the part of the operations outside of slow calls, as samples show the lines that run operations."""
    called_ms = _slow_ms(slow, Stage.HOST, Stage.BETWEEN)
    if slow is None or lines is None or not called_ms:
        return 1.0
    every = (line for part in lines.parts.values() for line in part if line.at not in slow.places)
    own_ms = sum(line.ms for line in every if line.work is LineWork.OPERATIONS)
    return own_ms / (own_ms + called_ms)


OTHER = (LineWork.READING, LineWork.PYTHON)  # Work that no graph holds

OUTSIDE = (
    "; code between them that reads values of tensors (float(), int(), .numpy(), NumPy) has to stay outside of the "
    "function"
)


def _others_ms(eager: EagerWork, slow: SlowCalls | None, lines: HostLines | None) -> float | None:
    """Return the host's time in lines that read values or run other code; None where a function can hold the step.

    Keras' own eager step is one function. Operations of several lines, of which one is in no function that a line
    calls, are the body of a loop: it is no function yet, and may compute more than one training step, such as the
    steps of an environment. Without stack samples nothing is known.
    """
    named = slow.places if slow else ()
    every = lines.parts.get(Stage.HOST, ()) if lines and not eager.asked else ()
    host = [line for line in every if line.at not in named]
    others = [line.ms for line in host if line.work in OTHER]
    found = [line for line in host if line.work is LineWork.OPERATIONS and line.at]
    in_loop = len({line.at for line in found}) > 1 and any(not line.caller for line in found)
    return sum(others) if others or in_loop else None


def _remedy(eager: EagerWork, lines: HostLines | None) -> Remedy:
    if eager.beside:
        found = lines.parts.get(Stage.HOST, ()) if lines else ()
        most = (line.at for line in found if line.work is LineWork.OPERATIONS and line.at)
        return Remedy(BESIDE, at=next(most, eager.at))
    if eager.asked:
        action = "Compile the model without run_eagerly=True"
        return Remedy(action, CODE["compiled"], eager.at, "run-eagerly-off")
    at, action = eager.at, "Wrap the step in a tf.function"
    if eager.step_at:
        at, action = eager.step_at, "Decorate the function of a step with tf.function"
    return Remedy(action, CODE["function"], at, "tf-function")


BESIDE = "Run the operations beside the step in a tf.function, or less often"
