from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    operations: float = limit(20.0)
    call_ms: float = limit(0.5)


BESIDE = "Run the operations beside the step in a tf.function, or less often"
OTHER = (LineWork.READING, LineWork.PYTHON)  # Work that no graph holds
OF_THE_STEP = (None, SlowCall.MODEL, SlowCall.FIT)  # Calls that may be the step itself; the others cost much each

OUTSIDE = (
    "; code between them that reads values of tensors (float(), int(), .numpy(), NumPy) has to stay outside of the "
    "function"
)


# Ms of Python for an operation that it runs by itself, at most: 0.02 to 0.1 were measured, and a layer of Keras
# takes more. Longer pauses of the host, and kernels that are slower by more than that, wait for cores.
EACH_MS = 0.25


def check(
    eager: EagerWork, breakdown: Breakdown, lines: HostLines | None, cores: Cores | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the operations that run one by one with the functions."""
    seen = [(part, line) for part, found in (lines.parts if lines else {}).items() for line in found]
    slow = [(part, line) for part, line in seen if line.call not in OF_THE_STEP]
    named = {line.at for _, line in slow}
    slow_ms, called_ms = sum(line.ms for part, line in slow if part is Stage.HOST), sum(line.ms for _, line in slow)
    # The part of the operations outside of slow calls, as samples show the lines that run operations.
    own, runs = 1.0, f"Python runs {eager.operations:.0f} operations"
    if lines and called_ms:
        running = (line for _, line in seen if line.work is LineWork.OPERATIONS and line.at not in named)
        own_ms = sum(line.ms for line in running)
        own = own_ms / (own_ms + called_ms)
    on_host = [line for part, line in seen if part is Stage.HOST]
    others = [line for line in on_host if line.at not in named]
    running_at = [line for line in others if line.work is LineWork.OPERATIONS and line.at]
    in_loop = len({line.at for line in running_at}) > 1 and any(not line.caller for line in running_at)
    read = [line.ms for line in others if line.work in OTHER]
    # The host's time in lines that read values or run other code; None where a function can hold the step: Keras'
    # own eager step is one. Operations of several lines, of which one is in no function that a line calls, are the
    # body of a loop: it is no function yet, and may compute more than one training step, such as the steps of an
    # environment.
    others_ms = sum(read) if not eager.asked and (read or in_loop) else None
    host_ms, stays_ms = breakdown[Stage.HOST], slow_ms + (others_ms or 0.0)
    bound = Bound.EXPECTED if others_ms is None else Bound.AT_MOST
    left = min(1.0, (limits.call_ms + stays_ms) / host_ms) if host_ms else 1.0
    contended = cores is not None and cores.contended
    # What a function of all operations spares: Python's time, and a CPU's pauses within kernels. While other
    # programs hold the cores, the host's time may be a wait for these beyond what Python needs.
    device_ms, most_ms = breakdown[Stage.DEVICE], EACH_MS * eager.operations
    left = max(left, 1.0 - most_ms / host_ms) if contended and host_ms else left
    effects, saved_ms = (
        [Effect(Stage.HOST, left, bound=bound)],
        own * min(eager.operations_ms - eager.least_ms, most_ms),
    )
    if eager.least_ms and device_ms and saved_ms > 0 and not contended:
        effects.append(Effect(Stage.DEVICE, max(0.0, 1 - saved_ms / device_ms), bound=bound))
    step = Table(
        ("line that defines the function of a step", "line of the loop that calls it"),
        ((eager.step_at or "", eager.called_at or "unknown"),),
    )
    fastest = Measure("time in the kernels of these operations, each at its fastest", ms(eager.least_ms))
    stays = Measure("host time in slow calls, and in lines that run no TensorFlow operation", ms(stays_ms))
    shown = ((eager.least_ms, fastest), (eager.step_at and not eager.asked, step), (stays_ms, stays))
    beside = f" beside {eager.beside}" if eager.beside else ""
    return judged(
        Measure("operations outside of tf.functions per step", count(eager.operations)),
        Measure("time in operations outside of tf.functions", ms(eager.operations_ms)),
        Measure("time in tf.functions", ms(eager.functions_ms)),
        healthy=f"{runs} per step outside of tf.functions",
        finding=f"{runs} one by one{beside} in {breakdown.each_step}{'' if others_ms is None else OUTSIDE}",
        wrong=own * eager.operations >= limits.operations and own * eager.operations_ms > eager.functions_ms,
        details=(Measure("host time per step", ms(host_ms)), *(one for known, one in shown if known)),
        remedies=[_remedy(eager, on_host)],
        effects=effects,
    )


def _remedy(eager: EagerWork, host: Sequence[TimedLine]) -> Remedy:
    if eager.beside:
        most = (line.at for line in host if line.work is LineWork.OPERATIONS and line.at)
        return Remedy(BESIDE, at=next(most, eager.at))
    if eager.asked:
        return Remedy("Compile the model without run_eagerly=True", CODE["compiled"], eager.at, "run-eagerly-off")
    action = (
        "Decorate the function of a step with tf.function" if eager.step_at else "Wrap the step in a tf.function"
    )
    return Remedy(action, CODE["function"], eager.step_at or eager.at, "tf-function")
