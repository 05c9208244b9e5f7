from tfdoctor.facts.run.framework import TENSORFLOW
from tfdoctor.facts.steps.steps import FEW_STEPS
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Steps in one call, as the remedy proposes (a twentieth of the overhead is left), and the fewest worth it.
STEPS_PER_CALL, FEWEST_PER_CALL = 20, 5
ENOUGH = 64  # Examples in a batch, as the remedy for a small one proposes: twice the default of Keras' fit

FIXED = "are the fixed cost of a training call in Python, which several steps can share in one call"
TOO_FEW = "one or two traced steps do not show whether that repeats; trace more steps (--steps 20)"
IN_USE = "share of device memory in use"
NOTHING_LEFT = "one call holds several steps already, and a larger batch may not fit into the device's memory"
EAGER = "the step runs eagerly: compile it first to see the effect of the batch size"
INPUT = "the job waits for its input: a larger batch would only wait longer"


class Limits(RuleLimits):
    share: float = share_limit(0.4)
    call_ms: float = limit(3.0)
    examples: float = limit(16.0)
    values: float = limit(10_000.0)
    each_ms: float = limit(0.02)
    memory: float = share_limit(0.7)


def check(  # noqa: PLR0911, PLR0913, PLR0917 - the overhead, and all facts that look like it but are not
    breakdown: Breakdown, overhead: PythonOverhead, device: Device, steps: Steps, program: Program | None,
    memory: DeviceMemory | None, framework: Framework, compiling: CompileTime | None,
    operations: Operations | None, eager: EagerWork | None, conversions: Conversions | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the overhead that does not depend on the batch size with the step."""
    settings, size = (program.settings, program.batch_size) if program else (None, None)
    if (settings and settings.run_eagerly) or steps.source == StepSource.EAGER_GRADIENT:
        return NotApplicable(reason=EAGER)
    if breakdown.waits_for_input:
        return NotApplicable(reason=INPUT)
    on_cpu = device.kind == DeviceKind.CPU
    small = size if size and on_cpu and size <= limits.examples else None
    # Conversion of the arrays that a call is given is no fixed part: one call of several steps is given all.
    edges_ms = max(0.0, overhead.edges_ms - (conversions.host_ms if conversions else 0.0))
    host_ms, between_ms, starting_ms = _fixed(breakdown, overhead, edges_ms, compiling, small, on_cpu=on_cpu)
    fixed_ms, least_ms = host_ms + between_ms + starting_ms, limits.share * breakdown.step_ms
    does = "Python overhead takes" if on_cpu else "The device waits for the host"
    does = f"With {counted(small, 'example')} a batch, calls and starting operations take" if small else does
    summary = f"{does} {milliseconds(fixed_ms)} of {breakdown.each_step} ({milliseconds(breakdown.step_ms)})"
    evidence = (
        Measure.share("share of the step that is fixed overhead", fixed_ms / breakdown.step_ms, limits.share),
        *((Measure("batch size", count(size)),) if size else ()),
        *((Measure.share(IN_USE, memory.fullest.share, limits.memory),) if memory else ()),
    )
    if fixed_ms < least_ms:
        # What entering and leaving a call takes on a CPU, where it is as long as elsewhere.
        time = PartTime(Stage.HOST, ms(host_ms), f"{milliseconds(host_ms)} {FIXED}")
        as_elsewhere = (time,) if on_cpu and host_ms <= limits.call_ms else ()
        return Healthy(summary=summary, evidence=evidence, necessary=as_elsewhere)
    if not on_cpu and steps.count <= FEW_STEPS:
        return NotApplicable(reason=f"{summary}, but {TOO_FEW}")
    if on_cpu and edges_ms > limits.call_ms:
        return NotApplicable(
            reason=f"a step takes {milliseconds(edges_ms)} before its first and after its last operation, but "
            f"Python's calls account for at most {milliseconds(limits.call_ms)}: the part that does not grow "
            "with the batch is unknown"
        )
    # Of a known epoch, a number that divides it: Keras fills up the last call, and would train on more batches.
    epoch = (settings.steps_per_epoch or 0) if settings else 0
    fitting = (one for one in range(STEPS_PER_CALL, FEWEST_PER_CALL - 1, -1) if epoch and epoch % one == 0)
    number_of = next(fitting, STEPS_PER_CALL)
    remedies = _remedies(steps, memory, framework, number_of, eager.at if eager else None, limits)
    if not remedies:
        return NotApplicable(reason=f"{summary}, but {NOTHING_LEFT}")
    remaining, entry = (1 / number_of if on_cpu else 0.0), StepWork.STEP_ENTRY
    parts: list[tuple[Stage, str, float]] = [(Stage.HOST, entry, host_ms), (Stage.BETWEEN, entry, between_ms)]
    if small and host_ms + between_ms < least_ms:  # a larger batch spares more
        rows = operations.rows if operations else ()
        cheap = [(Stage.DEVICE, row.name, row.ms) for row in rows if is_small(row, limits.values, limits.each_ms)]
        parts += [(Stage.HOST, StepWork.SCHEDULING, starting_ms), *cheap]
        remedies, remaining = remedies[::-1], small / ENOUGH
    return Finding(
        summary=f"{summary}, independent of the batch size",
        evidence=evidence,
        remedies=(
            remedies[0],
            *(replace(one, action=f"Or {one.action[:1].lower()}{one.action[1:]}") for one in remedies[1:]),
        ),
        effects=tuple(
            Effect(stage, remaining, work, ms(time_ms), bound=Bound.AT_MOST)
            for stage, work, time_ms in parts
            if time_ms
        ),
    )


def _fixed(
    breakdown: Breakdown, overhead: PythonOverhead, edges_ms: float, compiling: CompileTime | None,
    small: int | None, *, on_cpu: bool,
) -> tuple[float, float, float]:  # fmt: skip
    """Return what does not depend on the batch size: of a call, of the time between two, of starting operations.

    Of an accelerator, its wait for the host, without compiling, which recompilation reports. On a CPU, Python's
    overhead; pauses and the time between calls no more than inside them: the rest is the loop's work, or an
    operation's that the trace does not show. Of small batches also the host's time inside the call while the
    graph's threads work: they start operations.
    """
    if not on_cpu:
        return max(0.0, breakdown[Stage.HOST] - (compiling.host_ms if compiling else 0.0)), 0.0, 0.0
    starting_ms = max(0.0, breakdown[Stage.HOST] - overhead.edges_ms - overhead.pauses_ms) if small else 0.0
    return edges_ms + min(overhead.pauses_ms, edges_ms), min(overhead.between_ms, edges_ms), starting_ms


def _remedies(
    steps: Steps, memory: DeviceMemory | None, framework: Framework, number_of: int, at: Location | None,
    limits: Limits,
) -> list[Remedy]:  # fmt: skip
    """Return first the change that leaves the training as it is, at the line of fit or of the loop."""
    code = {JAX: CODE["scan"], "": CODE["loop"], TENSORFLOW: CODE["loop"]}.get(framework.name, "")
    remedies = [Remedy("Process several batches in one compiled call", code, at)]
    if steps.several_per_call:
        remedies = []
    elif steps.source == StepSource.KERAS_FIT:
        code = CODE["compile"].format(number_of)
        remedies = [Remedy("Run several steps in one call", code, at, "steps-per-execution")]
    if memory is None or memory.fullest.share <= limits.memory:
        room = f"the device's memory was {percent(memory.fullest.share)} full" if memory else "if memory allows"
        action = f"Use a larger batch ({room}), adjust the learning rate and compare the accuracy"
        remedies.append(Remedy(action, CODE["larger"]))
    return remedies
