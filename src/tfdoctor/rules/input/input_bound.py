from tfdoctor.facts.input.input_pipeline import stage_table
from tfdoctor.facts.step_time.breakdown import INPUT_SHARE, READY_MS, TracingCost
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

FIND_OUT = "Find the slow part of the pipeline: trace more steps, or time the dataset without the model"
LATE = "the wait is for a thread that wakes up late, not for the pipeline's work"
TAKES = frozenset({"__next__", "get_next"})  # Methods of iterators by which a program takes a batch
# Fillings of a shuffle buffer per step: with one iterator it is filled once, whatever the number of steps.
REFILLED = 0.5
HAND_OVER = "Handing over a batch that is ready takes tf.data about 0.1 ms"


class Limits(RuleLimits):
    share: float = share_limit(INPUT_SHARE)
    ready_ms: float = limit(READY_MS)
    late: float = share_limit(0.25)
    ahead: float = share_limit(0.25)


def check(  # noqa: PLR0913, PLR0917 - the wait, and all facts that explain or excuse it
    breakdown: Breakdown, pipeline: InputPipeline | None, cacheable: Cacheable | None, steps: Steps | None,
    cost: TracingCost | None, phases: RunPhases | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the exposed wait for input with the step, as it was traced and without the profiler's cost."""
    wait, step = breakdown["input"], breakdown.step_ms
    if breakdown.unseen_input and not wait:
        return NotApplicable(reason=breakdown.unseen_input)
    measures = (
        Measure.share("share of the step spent waiting for input", wait / step, limits.share),
        Measure("wait for input per step", ms(wait), ms(limits.ready_ms)),
    )
    which = text.capitalized(breakdown.each_step)
    waits = f"{which} waits {milliseconds(wait)} of its {milliseconds(step)}"
    if _little(wait, step, limits):
        ready = (PartTime(Stage.INPUT, ms(wait), HAND_OVER),) if wait < limits.ready_ms else ()
        summary = f"{waits} ({percent(wait / step)}) for input"
        return Healthy(summary=summary, evidence=measures, necessary=ready)
    # Not for the pipeline's work where the profiler records an event for each element, or where a pipeline that
    # works ahead, without stalls, makes a batch in a fraction of the step.
    untraced, work_ms, clause = cost.untraced if cost else {}, pipeline.work_ms if pipeline else 0.0, ""
    ahead = pipeline and pipeline.prefetches and pipeline.serial_ms < limits.ready_ms
    late = not (steps and steps.stalled) and wait < limits.late * step
    if untraced and _little(untraced[Stage.INPUT], sum(untraced.values()), limits):
        clause = f" while it is traced; without the profiler's cost, {milliseconds(untraced[Stage.INPUT])}"
        sentence = "Most of the wait is the profiler's own cost: it records an event for each element"
        measure = Measure("wait for input per step without tracing", ms(untraced[Stage.INPUT]))
    elif ahead and late and 0.0 < work_ms <= limits.ahead * step:
        clause = f", but the pipeline makes the next batch in {milliseconds(work_ms)}, while the step computes"
        sentence = f"The batch is made in time: {LATE}"
        measure = Measure("work of the slowest part of the pipeline per step", ms(work_ms))
    if clause:
        excuse = PartTime(Stage.INPUT, ms(wait), sentence)
        return Healthy(summary=f"{waits} for input{clause}", evidence=(*measures, measure), necessary=(excuse,))
    cause, remedy, filled = _cause(pipeline, cacheable, phases)
    stages = [stage for stage in pipeline.stages if not stage.is_root] if pipeline else []
    table = [stage_table(stages, "work per step", lambda stage: stage.work_ms)] if pipeline else []
    return Finding(
        summary=f"{waits} for input{cause}",
        evidence=(*measures, *filled, *table),
        remedies=(remedy,),
        effects=(Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),),
    )


def _cause(
    pipeline: InputPipeline | None, cacheable: Cacheable | None, phases: RunPhases | None
) -> tuple[str, Remedy, tuple[Measure, ...]]:
    """Return what limits the pipeline, as a clause, what to change, and what shows it beside the stages' times."""
    stages, fillings = (pipeline.stages if pipeline else ()), 0.0
    for stage in stages:  # how often a step fills a shuffle buffer: by what comes in beyond what goes out
        size = stage.dataset.parameters.buffer_size if stage.dataset and stage.kind.startswith("Shuffle") else None
        below = (one.calls for one in stages if one.path.rpartition("::")[0] == stage.path)
        surplus = next(below, 0.0) - stage.calls
        if size and size > 0 and surplus > stage.calls:  # of a usual pipeline, as many come in as go out
            fillings = max(fillings, surplus / size)
    if fillings >= REFILLED:
        lines = phases.at(Phase.STEPS) if phases else ()
        takes = next((line.at for line in lines if line.calls.rpartition(".")[2] in TAKES), None)
        clause = f"; the shuffle buffer is filled {number(round(fillings, 1))} times in each step, by new iterators"
        filled = Measure("fillings of the shuffle buffer per step", count(fillings), count(REFILLED))
        remedy = Remedy("Make one iterator before the loop, and take all batches from it", CODE["one"], takes)
        return clause, remedy, (filled,)
    critical = pipeline.critical if pipeline else None
    if critical and not critical.is_root:  # no user can change tf.data's root
        return f"; {critical.title} limits the pipeline", _remedy(critical, cacheable), ()
    return "", Remedy(FIND_OUT, CODE["without-model"]), ()


def _little(wait_ms: float, step_ms: float, limits: Limits) -> bool:
    return wait_ms < limits.share * step_ms or wait_ms < limits.ready_ms


def _remedy(critical: StageTime, cacheable: Cacheable | None) -> Remedy:
    if critical.python_ms > critical.work_ms / 2:
        action = f"Replace the Python code in {critical.title} with TensorFlow operations"
        return Remedy(action, CODE["python-free"], critical.at)
    if critical.kind == "Map":
        action, code = f"Run {critical.title} on several threads", CODE["mapped"].format("function")
        return Remedy(action, code, critical.at, "parallel-map")
    if cacheable and cacheable.holds(critical.dataset):
        function = critical.dataset.function if critical.dataset else ""
        mapped = f"{CODE['mapped'].format(function)}\n" if function.isidentifier() else ""
        action, changes = f"Make {critical.title} cheaper, or cache its output", "the output has to fit into memory"
        return Remedy(action, f"{mapped}{CODE['cached']}", critical.at, "cache", changes=changes)
    what, at = critical.slowest or (critical.title, critical.at)
    within = f" in {critical.title}" if critical.slowest else ""
    return Remedy(f"Make {what}{within} cheaper", CODE["cheaper"], at)
