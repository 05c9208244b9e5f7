from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.run.framework import JAX, TENSORFLOW
from tfdoctor.facts.step_time.compile_time import CompileTime
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.steps.steps import FEW_STEPS
from tfdoctor.rules.small_batch.fixed_parts import (
    FixedPart,
    call_on_cpu,
    small_operations,
    starting_operations,
    wait_of_accelerator,
    without_conversions,
)

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "a larger batch changes the training, so the learning rate has to be adjusted"

STEPS_PER_CALL, FEWEST_PER_CALL = 20, 5
"""Steps in one call, as the remedy proposes (a twentieth of the overhead is left), and the fewest worth it."""

TOO_FEW = "one or two traced steps do not show whether that repeats; trace more steps (--steps 20)"

NOTHING_LEFT = "one call holds several steps already, and a larger batch may not fit into the device's memory"

ENOUGH = 64
"""Examples in a batch, as the remedy for a small one proposes: twice the default of Keras' fit."""

EAGER = "the step runs eagerly: compile it first to see the effect of the batch size"
INPUT = "the job waits for its input: a larger batch would only wait longer"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.4,
        "Smallest share of the step that does not grow with the batch; above it, 20 steps in one call saved "
        "30 to 60 % in three of four scripts (benchmarks/accuracy)",
    )
    call_ms: float = limit(
        3.0,
        "Longest time in ms per step, on a CPU, that Python takes to enter and leave a training call: 0.5 to "
        "2.6 ms in the corpus; a longer time has another cause, such as tracing",
    )
    examples: float = limit(
        16.0,
        "Largest batch, on a CPU, for which the time to start operations is reported: half of the default of "
        "Keras' fit, because users often choose a larger batch on purpose",
    )
    values: float = limit(
        10_000.0,
        "Largest number of values in the tensors of an operation that a larger batch hardly slows: 40 kB of "
        "float32, which fits in every cache",
    )
    each_ms: float = limit(
        0.02,
        "Longest call, in ms, of such an operation when the tensors' size is unknown, as inside loops: in an LSTM "
        "of 64 units a matmul took 3 to 9 us with 2 examples and 8 to 17 us with 64",
    )
    memory: float = share_limit(
        0.7, "Largest share of the device's memory in use; above it a batch twice as large may not fit"
    )


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
    if reason := _why_not(breakdown, steps, program):
        return NotApplicable(reason=reason)
    on_cpu, size = device.kind == DeviceKind.CPU, program.batch_size if program else None
    small = size if size and on_cpu and size <= limits.examples else None
    starting = starting_operations(breakdown, overhead) if small else ()
    overhead = without_conversions(overhead, conversions)
    call = call_on_cpu(overhead) if on_cpu else wait_of_accelerator(breakdown, compiling)
    fixed_ms, least_ms = (sum(part.ms for part in (*call, *starting)), limits.share * breakdown.step_ms)
    evidence = _evidence(fixed_ms, breakdown.step_ms, program, memory, limits)
    summary = _summary(fixed_ms, breakdown, small, on_cpu=on_cpu)
    if fixed_ms < least_ms:
        entry = _entry(call, limits) if on_cpu else ()
        return Healthy(summary=summary, evidence=evidence, necessary=entry)
    if not on_cpu and steps.count <= FEW_STEPS:
        return NotApplicable(reason=f"{summary}, but {TOO_FEW}")
    if on_cpu and overhead.edges_ms > limits.call_ms:
        return NotApplicable(reason=_unexplained(overhead, limits))
    number = _steps_per_call(program)
    remedies = _remedies(steps, memory, framework, number, eager.at if eager else None, limits)
    if not remedies:
        return NotApplicable(reason=f"{summary}, but {NOTHING_LEFT}")
    if small and sum(part.ms for part in call) < least_ms:  # a larger batch spares more
        parts = (*call, *starting, *small_operations(operations, limits.values, limits.each_ms))
        return _finding(summary, evidence, remedies[::-1], parts, small / ENOUGH)
    return _finding(summary, evidence, remedies, call, 1 / number if on_cpu else 0.0)


def _finding(
    summary: str,
    evidence: tuple[Measure, ...],
    remedies: Sequence[Remedy],
    parts: Iterable[FixedPart],
    remaining: float,
) -> Finding:
    """Return the finding, with the second remedy as an alternative to the first."""
    first, *others = remedies
    or_else = (replace(r, action=f"Or {r.action[:1].lower()}{r.action[1:]}") for r in others)
    return Finding(
        summary=f"{summary}, independent of the batch size",
        evidence=evidence,
        remedies=(first, *or_else),
        effects=tuple(part.effect(remaining) for part in parts if part.ms),
    )


def _unexplained(overhead: PythonOverhead, limits: Limits) -> str:
    return (
        f"a step takes {milliseconds(overhead.edges_ms)} before its first and after its last operation, but "
        f"Python's calls account for at most {milliseconds(limits.call_ms)}: the part that does not grow "
        "with the batch is unknown"
    )


def _why_not(breakdown: Breakdown, steps: Steps, program: Program | None) -> str:
    """Return why the step cannot be judged; "" when it can."""
    eagerly = program is not None and program.settings.run_eagerly
    if eagerly or steps.source == StepSource.EAGER_GRADIENT:
        return EAGER
    return INPUT if breakdown.waits_for_input else ""


def _summary(fixed_ms: float, breakdown: Breakdown, batch: int | None, *, on_cpu: bool) -> str:
    step = f"{milliseconds(fixed_ms)} of {breakdown.each_step} ({milliseconds(breakdown.step_ms)})"
    if batch:
        examples = counted(batch, "example")
        return f"With {examples} a batch, calls and starting operations take {step}"
    return f"Python overhead takes {step}" if on_cpu else f"The device waits for the host {step}"


def _steps_per_call(program: Program | None) -> int:
    """Return how many steps one call may take: of a known epoch, a number that divides it.

    Keras fills up the last call of an epoch, and would train on more batches than before.
    """
    epoch = program.settings.steps_per_epoch if program else None
    if not epoch:
        return STEPS_PER_CALL
    divisor = max(number for number in range(1, STEPS_PER_CALL + 1) if epoch % number == 0)
    return divisor if divisor >= FEWEST_PER_CALL else STEPS_PER_CALL


def _entry(parts: tuple[FixedPart, ...], limits: Limits) -> tuple[PartTime, ...]:
    """Return the time that entering and leaving a call takes on a CPU, where it is as long as elsewhere."""
    host_ms = sum(part.ms for part in parts if part.stage is Stage.HOST)
    if host_ms > limits.call_ms:
        return ()
    fixed = f"{milliseconds(host_ms)} are the fixed cost of a training call in Python"
    why = f"{fixed}, which several steps can share in one call"
    return (PartTime(Stage.HOST, ms(host_ms), why),)


def _evidence(
    fixed_ms: float, step_ms: float, program: Program | None, memory: DeviceMemory | None, limits: Limits
) -> tuple[Measure, ...]:
    label = "share of the step that is fixed overhead"
    measures = [Measure.share(label, fixed_ms / step_ms, limits.share)]
    if program and program.batch_size:
        measures.append(Measure("batch size", count(program.batch_size)))
    if memory:
        full = memory.fullest.share
        measures.append(Measure.share("share of device memory in use", full, limits.memory))
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
        compile_ = COMPILE.format(number)
        remedies = [Remedy("Run several steps in one call", compile_, at, "steps-per-execution")]
    if memory is None or memory.fullest.share <= limits.memory:
        room = "if memory allows"
        if memory is not None:
            room = f"the device's memory was {percent(memory.fullest.share)} full"
        action = f"Use a larger batch ({room}), adjust the learning rate and compare the accuracy"
        remedies.append(Remedy(action, CODE["larger"]))
    return remedies


COMPILE = "model.compile(..., steps_per_execution={0})  # callbacks see every {0}th batch"
