from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.input_pipeline import stage_table
from tfdoctor.facts.step_time.breakdown import INPUT_SHARE, READY_MS
from tfdoctor.facts.step_time.tracing_cost import TracingCost
from tfdoctor.terms import text

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "what the stage computes has to become cheaper, unless uncached-preprocessing finds a cache"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(
        INPUT_SHARE,
        "Smallest share of the step spent waiting that counts as input-bound; xprof's analyzer and DLProf "
        "use 5 % as well",
    )
    ready_ms: float = limit(
        READY_MS,
        "Shortest wait in ms per step that counts as input-bound; handing over a batch that is ready takes "
        "tf.data about 0.1 ms, which is more than 5 % of a 1 ms step although nothing waits",
    )

    late: float = share_limit(
        0.25,
        "Share of the step from which a wait counts even if the pipeline's own work does not explain it, because "
        "something that the trace does not show may delay the pipeline",
    )
    ahead: float = share_limit(
        0.25,
        "Largest share of the step that the work for a batch takes in a pipeline that works ahead, at which a "
        "shorter wait is not for this work: the batch is ready before it is needed, and making it faster does "
        "not shorten the step",
    )


def check(
    breakdown: Breakdown,
    pipeline: InputPipeline | None,
    cacheable: Cacheable | None,
    steps: Steps | None,
    cost: TracingCost | None,
    limits: Limits = Limits(),
) -> Verdict:
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
    if why := _excuse(breakdown, pipeline, steps, cost, limits):
        clause, measure, sentence = why
        return Healthy(
            summary=f"{waits} for input{clause}",
            evidence=(*measures, measure),
            necessary=(PartTime(Stage.INPUT, ms(wait), sentence),),
        )
    critical = pipeline.critical if pipeline else None
    cause, remedy = "", Remedy(FIND_OUT, CODE["without-model"])
    if critical and not critical.is_root:  # no user can change tf.data's root
        cause, remedy = f"; {critical.title} limits the pipeline", _remedy(critical, cacheable)
    stages = [stage for stage in pipeline.stages if not stage.is_root] if pipeline else []
    table = [stage_table(stages, "work per step", lambda stage: stage.work_ms)] if pipeline else []
    return Finding(
        summary=f"{waits} for input{cause}",
        evidence=(*measures, *table),
        remedies=(remedy,),
        effects=(Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),),
    )


def _little(wait_ms: float, step_ms: float, limits: Limits) -> bool:
    return wait_ms < limits.share * step_ms or wait_ms < limits.ready_ms


def _excuse(
    breakdown: Breakdown,
    pipeline: InputPipeline | None,
    steps: Steps | None,
    cost: TracingCost | None,
    limits: Limits,
) -> tuple[str, Measure, str] | None:
    """Return why a wait is not for the pipeline's work: a clause for the summary, its measure, and a sentence.

    It is the recording of the events that the pipeline has while it makes a batch, or a pipeline that works ahead,
    without stalls, makes a batch in a fraction of the step.
    """
    untraced, step_ms = cost.untraced[Stage.INPUT] if cost else 0.0, breakdown.step_ms
    if cost and _little(untraced, sum(cost.untraced.values()), limits):
        clause = f" while it is traced; without the profiler's cost, {milliseconds(untraced)}"
        sentence = "Most of the wait is the profiler's own cost: it records an event for each element"
        return clause, Measure("wait for input per step without tracing", ms(untraced)), sentence
    if pipeline is None or (steps and steps.stalled) or breakdown["input"] >= limits.late * step_ms:
        return None
    work_ms, ahead = pipeline.work_ms, pipeline.prefetches and pipeline.serial_ms < limits.ready_ms
    if not ahead or not 0.0 < work_ms <= limits.ahead * step_ms:
        return None
    clause = f", but the pipeline makes the next batch in {milliseconds(work_ms)}, while the step computes"
    late = "the wait is for a thread that wakes up late, not for the pipeline's work"
    measure = Measure("work of the slowest part of the pipeline per step", ms(work_ms))
    return clause, measure, f"The batch is made in time: {late}"


FIND_OUT = "Find the slow part of the pipeline: trace more steps, or time the dataset without the model"

HAND_OVER = "Handing over a batch that is ready takes tf.data about 0.1 ms"


def _remedy(critical: StageTime, cacheable: Cacheable | None) -> Remedy:
    if critical.python_ms > critical.work_ms / 2:
        action = f"Replace the Python code in {critical.title} with TensorFlow operations"
        return Remedy(action, CODE["python-free"], critical.at)
    if critical.kind == "Map":
        action, code = f"Run {critical.title} on several threads", MAPPED.format("function")
        return Remedy(action, code, critical.at, "parallel-map")
    if cacheable and cacheable.holds(critical.dataset):
        function = critical.dataset.function if critical.dataset else ""
        mapped = f"{MAPPED.format(function)}\n" if function.isidentifier() else ""
        action, changes = f"Make {critical.title} cheaper, or cache its output", "the output has to fit into memory"
        return Remedy(action, f"{mapped}{CACHED}", critical.at, "cache", changes=changes)
    return Remedy(f"Make {critical.title} cheaper", CODE["cheaper"], critical.at)


MAPPED = "dataset = dataset.map({}, num_parallel_calls=tf.data.AUTOTUNE)"

CACHED = """\
# the output is identical in every epoch; if it fits into memory:
dataset = dataset.cache()  # right after the expensive stage, before shuffle and augmentation"""
