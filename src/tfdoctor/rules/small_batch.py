from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.machine.memory import DeviceMemory
from tfdoctor.facts.operations.step_parts import is_small
from tfdoctor.facts.run.framework import JAX, TENSORFLOW
from tfdoctor.facts.step_time.host_time import PythonOverhead
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork
from tfdoctor.facts.steps.steps import FEW_STEPS

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "a larger batch changes the training, so the learning rate has to be adjusted"

# Steps in one call, as the remedy proposes (a twentieth of the overhead is left), and the fewest worth it.
STEPS_PER_CALL, FEWEST_PER_CALL = 20, 5

TOO_FEW = "one or two traced steps do not show whether that repeats; trace more steps (--steps 20)"

NOTHING_LEFT = "one call holds several steps already, and a larger batch may not fit into the device's memory"

ENOUGH = 64  # Examples in a batch, as the remedy for a small one proposes: twice the default of Keras' fit

EAGER = "the step runs eagerly: compile it first to see the effect of the batch size"
INPUT = "the job waits for its input: a larger batch would only wait longer"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.4)
    call_ms: float = limit(3.0)
    examples: float = limit(16.0)
    values: float = limit(10_000.0)
    each_ms: float = limit(0.02)
    memory: float = share_limit(0.7)


# A part of the step that does not depend on the batch size: its stage, the effect's subject, ms per step.
Part = tuple[Stage, str, float]


def check(  # noqa: PLR0911, PLR0913, PLR0917 - the overhead, and all facts that look like it but are not
    breakdown: Breakdown,
    overhead: PythonOverhead,
    device: Device,
    steps: Steps,
    program: Program | None,
    memory: DeviceMemory | None,
    framework: Framework,
    compiling: CompileTime | None,
    operations: Operations | None,
    eager: EagerWork | None,
    conversions: Conversions | None,
    limits: Limits = Limits(),
) -> Verdict:
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
    call, starting = _call(breakdown, overhead, edges_ms, compiling, on_cpu=on_cpu), list[Part]()
    if small:  # the host's time inside the call while the graph's threads work: they start operations
        rest_ms = max(0.0, breakdown[Stage.HOST] - overhead.edges_ms - overhead.pauses_ms)
        starting = [(Stage.HOST, StepWork.SCHEDULING, rest_ms)]
    call_ms = sum(time_ms for *_, time_ms in call)
    fixed_ms, least_ms = sum(time_ms for *_, time_ms in (*call, *starting)), limits.share * breakdown.step_ms
    summary = _summary(fixed_ms, breakdown, small, on_cpu=on_cpu)
    evidence = _evidence(fixed_ms, breakdown.step_ms, size, memory, limits)
    if fixed_ms < least_ms:
        return Healthy(summary=summary, evidence=evidence, necessary=_entry(call, limits) if on_cpu else ())
    if not on_cpu and steps.count <= FEW_STEPS:
        return NotApplicable(reason=f"{summary}, but {TOO_FEW}")
    if on_cpu and edges_ms > limits.call_ms:
        return NotApplicable(
            reason=f"a step takes {milliseconds(edges_ms)} before its first and after its last operation, but "
            f"Python's calls account for at most {milliseconds(limits.call_ms)}: the part that does not grow "
            "with the batch is unknown"
        )
    number = _steps_per_call(settings.steps_per_epoch if settings else None)
    remedies = _remedies(steps, memory, framework, number, eager.at if eager else None, limits)
    if not remedies:
        return NotApplicable(reason=f"{summary}, but {NOTHING_LEFT}")
    parts, remaining = call, 1 / number if on_cpu else 0.0
    if small and call_ms < least_ms:  # a larger batch spares more
        rows = operations.rows if operations else ()
        cheap = [row for row in rows if is_small(row, limits.values, limits.each_ms)]
        parts = [*call, *starting, *((Stage.DEVICE, row.name, row.ms) for row in cheap)]
        remedies, remaining = remedies[::-1], small / ENOUGH
    first, *others = remedies
    or_else = (replace(one, action=f"Or {one.action[:1].lower()}{one.action[1:]}") for one in others)
    return Finding(
        summary=f"{summary}, independent of the batch size",
        evidence=evidence,
        remedies=(first, *or_else),
        effects=tuple(
            Effect(stage, remaining, work, ms(time_ms), bound=Bound.AT_MOST)
            for stage, work, time_ms in parts
            if time_ms
        ),
    )


def _call(
    breakdown: Breakdown, overhead: PythonOverhead, edges_ms: float, compiling: CompileTime | None, *, on_cpu: bool
) -> list[Part]:
    """Return Python's overhead on a CPU; pauses and the time between calls no more than inside them.

    The rest is the loop's work, or an operation's that the trace does not show. Of an accelerator, return its wait
    for the host, without compiling, which recompilation reports.
    """
    if not on_cpu:
        wait_ms = max(0.0, breakdown[Stage.HOST] - (compiling.host_ms if compiling else 0.0))
        return [(Stage.HOST, StepWork.STEP_ENTRY, wait_ms)]
    return [
        (Stage.HOST, StepWork.STEP_ENTRY, edges_ms + min(overhead.pauses_ms, edges_ms)),
        (Stage.BETWEEN, StepWork.STEP_ENTRY, min(overhead.between_ms, edges_ms)),
    ]


def _summary(fixed_ms: float, breakdown: Breakdown, batch: int | None, *, on_cpu: bool) -> str:
    step = f"{milliseconds(fixed_ms)} of {breakdown.each_step} ({milliseconds(breakdown.step_ms)})"
    if batch:
        return f"With {counted(batch, 'example')} a batch, calls and starting operations take {step}"
    return f"Python overhead takes {step}" if on_cpu else f"The device waits for the host {step}"


def _steps_per_call(epoch: int | None) -> int:
    """Return how many steps one call may take: of a known epoch, a number that divides it.

    Keras fills up the last call of an epoch, and would train on more batches than before.
    """
    if not epoch:
        return STEPS_PER_CALL
    divisor = max(number for number in range(1, STEPS_PER_CALL + 1) if epoch % number == 0)
    return divisor if divisor >= FEWEST_PER_CALL else STEPS_PER_CALL


def _entry(parts: Sequence[Part], limits: Limits) -> tuple[PartTime, ...]:
    """Return the time that entering and leaving a call takes on a CPU, where it is as long as elsewhere."""
    host_ms = sum(time_ms for stage, _, time_ms in parts if stage is Stage.HOST)
    fixed = f"{milliseconds(host_ms)} are the fixed cost of a training call in Python"
    time = PartTime(Stage.HOST, ms(host_ms), f"{fixed}, which several steps can share in one call")
    return (time,) if host_ms <= limits.call_ms else ()


def _evidence(
    fixed_ms: float, step_ms: float, size: int | None, memory: DeviceMemory | None, limits: Limits
) -> tuple[Measure, ...]:
    measures = [Measure.share("share of the step that is fixed overhead", fixed_ms / step_ms, limits.share)]
    if size:
        measures.append(Measure("batch size", count(size)))
    if memory:
        measures.append(Measure.share("share of device memory in use", memory.fullest.share, limits.memory))
    return tuple(measures)


def _remedies(
    steps: Steps,
    memory: DeviceMemory | None,
    framework: Framework,
    number: int,
    at: Location | None,
    limits: Limits,
) -> list[Remedy]:
    """Return first the change that leaves the training as it is, at the line of fit or of the loop."""
    code = {JAX: CODE["scan"], "": CODE["loop"], TENSORFLOW: CODE["loop"]}.get(framework.name, "")
    remedies = [Remedy("Process several batches in one compiled call", code, at)]
    if steps.several_per_call:
        remedies = []
    elif steps.source == StepSource.KERAS_FIT:
        compile_ = CODE["compile"].format(number)
        remedies = [Remedy("Run several steps in one call", compile_, at, "steps-per-execution")]
    if memory is None or memory.fullest.share <= limits.memory:
        room = f"the device's memory was {percent(memory.fullest.share)} full" if memory else "if memory allows"
        action = f"Use a larger batch ({room}), adjust the learning rate and compare the accuracy"
        remedies.append(Remedy(action, CODE["larger"]))
    return remedies
