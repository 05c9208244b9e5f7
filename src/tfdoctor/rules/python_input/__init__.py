from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.rules.python_input.input_lines import InputLine, InputLines
from tfdoctor.rules.python_input.making import MOST_LINES, OTHERS, Making
from tfdoctor.rules.python_input.remedies import once, remedies_of
from tfdoctor.terms.verdict import Cell

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "the Python of the stage has to be rewritten in TensorFlow operations"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much Python is reported, in the pipeline and in the training loop."""

    share: float = share_limit(
        0.1,
        "Smallest share of the pipeline's slowest segment that Python must take; below it, replacing the "
        "Python code is not worth the work",
    )
    between: float = share_limit(
        0.05,
        "Smallest share of the step that making a batch in Python must take, between two calls of the "
        "training function",
    )
    stack_samples: float = limit(5.0, "Stack samples needed in lines that make batches before these lines count")
    line: float = share_limit(
        0.3, "Smallest share of the input's Python, by stack samples, that one function must take to be named"
    )
    call_ms: float = limit(
        3.0,
        "Longest time in ms that entering and leaving a training call takes by itself (as in small-batch); in "
        "longer ones the call waits for the interpreter",
    )
    crowding: float = share_limit(
        0.1,
        "Smallest share of the step that Python of the input may take from the compute of a CPU run that does not "
        "wait: with two threads that sleep between batches of arrays it was 1 %, with librosa in them 19 %",
    )
    explained: float = share_limit(
        0.5,
        "Smallest share of the wait that the pipeline's own work must be where other programs hold the cores: of "
        "two programs that share a core each gets half of it",
    )
    interpreter: float = share_limit(
        0.1,
        "Smallest share of the step in which the training loop waits for the interpreter while the input runs "
        "Python; below it, the operating system may be the cause",
    )


def check(  # noqa: PLR0913, PLR0917 - batches are made in the loop or in the pipeline: the facts of both
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    input_lines: InputLines | Unavailable,
    overhead: PythonOverhead | None,
    contention: CpuContention | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Measure the Python of the training loop, else of the pipeline."""
    made = Making.of(samples, body, conversions, limits.stack_samples)
    if made.total_ms:
        verdict = _in_the_loop(made, breakdown, limits)
        if isinstance(verdict, Finding) or isinstance(pipeline, Unavailable):
            return verdict
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=BY_MODEL if made.by_model else str(pipeline))
    contended = None
    if not breakdown.waits_for_input and overhead:
        contended = _contended(pipeline, breakdown, overhead, input_lines, contention, limits)
    if contention and isinstance(input_lines, InputLines):
        contended = contended or _crowding(input_lines, breakdown, contention, limits)
    return contended or _in_the_pipeline(pipeline, breakdown, input_lines, contention, limits)


BY_MODEL = (
    "the results of a model that the loop runs decide what is in a batch, so that no pipeline can make it ahead, "
    "and no line that makes a batch has enough stack samples to be named"
)


def _in_the_loop(made: Making, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Compare the making of batches in the training loop with the step."""
    share = breakdown.share(made.total_ms * (1.0 - made.remaining))
    label = "share of the step spent making a batch in Python"
    if made.taking_ms:
        label += f", beyond the {milliseconds(made.taking_ms)} that taking one from tf.data needs"
    measure = Measure.share(label, share, limits.between)
    what = (
        f"What makes a batch at {location(made.remedy.at)}"
        if made.by_model
        else "Making a batch in the training loop"
    )
    summary = f"{what} takes {milliseconds(made.total_ms)} of {breakdown.each_step}"
    if share < limits.between:
        return Healthy(summary=summary, evidence=(measure,))
    return Finding(
        summary=summary,
        evidence=(measure, made.table),
        remedies=(made.remedy,),
        effects=Effect.of_stages(made.times, StepWork.MAKING_BATCHES, made.remaining),
    )


def _in_the_pipeline(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    lines: InputLines | Unavailable,
    contention: CpuContention | None,
    limits: Limits,
) -> Verdict:
    """Compare the time in Python with the pipeline's slowest segment."""
    slowest = pipeline.slowest
    stages = [stage for stage in pipeline.limiting if stage.python_ms]
    python = _python_ms(stages)
    share = python / slowest.ms if slowest and slowest.ms else 0.0
    label = "share of the pipeline's slowest segment spent in Python"
    whole = Measure("Python time per step", ms(python))
    measures = (Measure.share(label, min(1.0, share), limits.share), whole)
    if not breakdown.waits_for_input:
        if any(dataset.python for dataset in pipeline.idle):
            return NotApplicable(reason=pipeline.why_idle)
        taken = f"Python takes {milliseconds(_python_ms(pipeline.stages))} per step in the pipeline"
        return Healthy(summary=f"{taken}; {breakdown.little_wait}", evidence=(whole,))
    if share < limits.share:
        taken = f"Python takes {milliseconds(python)} per step"
        return Healthy(summary=f"{taken} in the slowest part of the pipeline", evidence=measures)
    disturbed = contention.disturbance if contention else ""
    if disturbed and pipeline.work_ms < limits.explained * breakdown[Stage.INPUT]:
        work, wait = milliseconds(pipeline.work_ms), milliseconds(breakdown[Stage.INPUT])
        return NotApplicable(reason=f"the pipeline works {work} of the wait of {wait}, and {disturbed}")
    finding = _finding(pipeline, stages, breakdown, lines, contention, limits)
    return replace(finding, evidence=(*measures, *finding.evidence))


def _python_ms(stages: Sequence[StageTime]) -> float:
    return sum(stage.python_ms for stage in stages)


def _contended(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    overhead: PythonOverhead,
    lines: InputLines | Unavailable,
    contention: CpuContention | None,
    limits: Limits,
) -> Finding | NotApplicable | None:
    """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

    Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
    takes far longer than Python needs for it, as it does where other programs hold the cores.
    """
    beside_ms = pipeline.python_beside(breakdown.step_ms) * breakdown[Stage.HOST]
    waited_ms = min(max(0.0, overhead.edges_ms - limits.call_ms), beside_ms)
    stages = [stage for stage in pipeline.stages if stage.python_ms]
    share = breakdown.share(waited_ms)
    if share < limits.interpreter or not stages:
        return None
    if contention and contention.others:
        return NotApplicable(reason=f"the training loop waits in Python, and {contention.disturbance}")
    python = _python_ms(stages)
    finding = _finding(pipeline, stages, breakdown, lines, contention, limits)
    label = "share of the step in which the training loop waits for the interpreter, estimated"
    measure = Measure.share(label, share, limits.interpreter)
    waiting = Effect.of_stages({Stage.HOST: waited_ms}, StepWork.INTERPRETER)
    return replace(
        finding,
        summary=f"{milliseconds(python)} of Python per step in the pipeline keep the training loop from the "
        f"interpreter for up to {milliseconds(waited_ms)} of {breakdown.each_step}",
        evidence=(measure, Measure("Python time per step", ms(python)), *finding.evidence),
        effects=(*map(_effect, stages), *waiting),
    )


def _crowding(lines: InputLines, breakdown: Breakdown, contention: CpuContention, limits: Limits) -> Finding | None:
    """Return the finding where Python of the input takes more from the compute than the step waits for it."""
    work_ms = lines.threads * breakdown.step_ms
    taken_ms, heavy = contention.taken_ms(work_ms), lines.heaviest
    if lines.samples < limits.stack_samples or not heavy or taken_ms <= breakdown[Stage.INPUT]:
        return None
    if not contention.crowds_out(work_ms, breakdown.step_ms, limits.crowding):
        return None
    share = Measure.share(
        "share of the step that the input's Python may take from the compute",
        breakdown.share(taken_ms),
        limits.crowding,
    )
    work = Measure("time of threads in the input's Python per step, by stack samples", ms(work_ms))
    return Finding(
        summary=f"Threads make batches in Python for {milliseconds(work_ms)} per step, while no core is free: the "
        f"compute may take up to {milliseconds(taken_ms)} longer for it",
        evidence=(share, work, _line_table(lines, work_ms)),
        remedies=(once(lines.takes(heavy[0].at), heavy[0].at),),
        effects=contention.relief(work_ms),
    )


def _finding(
    pipeline: InputPipeline,
    stages: Sequence[StageTime],
    breakdown: Breakdown,
    lines: InputLines | Unavailable,
    contention: CpuContention | None,
    limits: Limits,
) -> Finding:
    """Return the finding about all Python of these stages: what its saving counts, its first remedy changes.

    The training loop may gain in addition: it no longer competes for the interpreter.
    """
    crowded = bool(contention and contention.crowded)
    slowest = max(stages, key=lambda stage: stage.python_ms)
    python, beside = _python_ms(stages), pipeline.python_beside(breakdown.step_ms)
    table = Table.of(
        stages,
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        ("Python time per step", lambda stage: ms(stage.python_ms)),
        ("work per step", lambda stage: ms(stage.work_ms)),
    )
    host = {Stage.HOST: breakdown[Stage.HOST] if beside else 0.0}
    sampled = InputLines(()) if isinstance(lines, Unavailable) else lines
    competing = Effect.of_stages(host, StepWork.INTERPRETER, 1.0 - beside)
    return Finding(
        summary=f"{slowest.title} makes the step wait: {milliseconds(python)} of Python in {breakdown.each_step}",
        evidence=(table, _line_table(lines, python)),
        remedies=remedies_of(
            stages, slowest.at, pipeline.python_kind, sampled, _heavy(sampled, limits), crowded=crowded
        ),
        effects=(*map(_effect, stages), *competing),
    )


def _heavy(lines: InputLines, limits: Limits) -> Sequence[InputLine]:
    """Return the lines of the function that takes most, where that is much of enough samples."""
    heavy = lines.heaviest if lines.samples >= limits.stack_samples else ()
    return heavy if heavy and lines.share(*heavy) >= limits.line else ()


def _line_table(lines: InputLines | Unavailable, python_ms: float) -> Table:
    """Divide the Python among the lines that the stack samples show."""
    if isinstance(lines, Unavailable):
        return Table(("lines that take the time",), ((f"unknown, because {lines}",),))

    def taken(*some: InputLine) -> tuple[Cell, Cell]:
        return ratio(lines.share(*some)), ms(lines.share(*some) * python_ms)

    rows: list[tuple[Cell, ...]] = [
        (line.at, line.caller or "-", line.calls or "-", *taken(line)) for line in lines.lines[:MOST_LINES]
    ]
    if others := lines.lines[MOST_LINES:]:
        rows.append((OTHERS, "-", "-", *taken(*others)))
    return Table(LINE_COLUMNS, tuple(rows))


def _effect(stage: StageTime) -> Effect:
    """Return a ceiling: the share of other operations remains, and of the time between operations as much.

    On crowded cores the function's threads mostly wait for a core between two operations, or after the last.
    """
    known = max(stage.python_ms, sum(stage.operations.values()) or stage.work_ms)
    remaining = 1.0 - stage.python_ms / known if known else 0.0
    return stage.scaled(remaining, Bound.AT_MOST)


LINE_COLUMNS = ("your line", "called at", "calls", "share of the samples", "time per step, estimated")
