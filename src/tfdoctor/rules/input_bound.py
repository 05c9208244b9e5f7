"""Training steps wait for input.

## What it checks

The time per step in which the training loop waits for the next batch (`IteratorGetNext` on a tf.data
pipeline, infeed on a TPU) while neither the device nor a copy is active: the *exposed* wait. Long waits of a few
steps that recur, as where every epoch begins by filling a shuffle buffer, count with their mean over all traced
steps. A single long wait does not count, unless it is at the end of an epoch and the trace contains a whole one.
A wait that is mostly the profiler's own cost does not count, nor a short wait for a pipeline that works ahead and
makes a batch in a fraction of the step.

## Why it matters

While the training loop waits, the hardware is idle. A faster model does not shorten a step that waits for
input. Producing batches faster, or in parallel with the step, saves up to the whole wait.

## How to fix

Speed up the stage that the report names: it limits the pipeline. In general, and in this order: end the
pipeline with `.prefetch(tf.data.AUTOTUNE)`, give the slow `map` `num_parallel_calls=tf.data.AUTOTUNE`,
`.cache()` what is identical in every epoch, read files with `.interleave(...)`, and apply cheap functions
to whole batches. When all cores are busy, move work to other machines with the tf.data service.

## Holds for

TensorFlow 2.3 and later, on CPU, GPU and TPU. Batches made outside tf.data (a Python loop over NumPy
arrays) do not appear as input.

Keras on PyTorch or JAX is not recorded by tfdoctor: its training is no TensorFlow, so that a tf.data pipeline that
feeds it shows neither steps nor a wait, and what the conversion of each batch costs cannot be decided.

## Sources

- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
- [Analyze tf.data performance with the TF Profiler](https://www.tensorflow.org/guide/data_performance_analysis)
- [Plumber: Diagnosing and Removing Performance Bottlenecks in Machine Learning Data Pipelines](https://arxiv.org/abs/2111.04131)
- [Keras issue 18873: Keras on PyTorch, fed by tf.data](https://github.com/keras-team/keras/issues/18873)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime, stage_table
from tfdoctor.facts.step_time.breakdown import INPUT_SHARE, READY_MS, Breakdown
from tfdoctor.facts.step_time.tracing_cost import TracingCost
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    PartTime,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "what the stage computes has to become cheaper, unless uncached-preprocessing finds a cache"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a wait for input is reported: both limits must be reached."""

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
        summary = f"{waits} ({percent(wait / step)}) for input"
        ready = (PartTime(Stage.INPUT, ms(wait), HAND_OVER),) if wait < limits.ready_ms else ()
        return Healthy(summary=summary, evidence=measures, necessary=ready)
    why = _profilers(cost, limits) or _in_time(breakdown, pipeline, steps, limits)
    if why is None:
        return _finding(waits, measures, pipeline, cacheable)
    return Healthy(
        summary=f"{waits} for input{why.clause}",
        evidence=(*measures, why.measure),
        necessary=(PartTime(Stage.INPUT, ms(wait), why.sentence),),
    )


def _little(wait_ms: float, step_ms: float, limits: Limits) -> bool:
    return wait_ms < limits.share * step_ms or wait_ms < limits.ready_ms


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a wait is not for the pipeline's work: a clause for the summary, its measure, and a sentence."""

    clause: str
    measure: Measure
    sentence: str


def _profilers(cost: TracingCost | None, limits: Limits) -> Excuse | None:
    """Say that most of a wait is the recording of the events that the pipeline has while it makes a batch."""
    if cost is None:
        return None
    untraced = cost.untraced[Stage.INPUT]
    if not _little(untraced, sum(cost.untraced.values()), limits):
        return None
    clause = f" while it is traced; without the profiler's cost, {milliseconds(untraced)}"
    measure = Measure("wait for input per step without tracing", ms(untraced))
    return Excuse(clause, measure, PROFILERS)


PROFILERS = "Most of the wait is the profiler's own cost: it records an event for each element"


def _in_time(
    breakdown: Breakdown, pipeline: InputPipeline | None, steps: Steps | None, limits: Limits
) -> Excuse | None:
    """Say that a pipeline that works ahead, without stalls, makes a batch in a fraction of the step."""
    step_ms = breakdown.step_ms
    if pipeline is None or (steps and steps.stalled) or breakdown["input"] >= limits.late * step_ms:
        return None
    ahead = pipeline.prefetches and pipeline.serial_ms < limits.ready_ms
    if not ahead or not 0.0 < pipeline.work_ms <= limits.ahead * step_ms:
        return None
    made = milliseconds(pipeline.work_ms)
    clause = f", but the pipeline makes the next batch in {made}, while the step computes"
    label = "work of the slowest part of the pipeline per step"
    return Excuse(clause, Measure(label, ms(pipeline.work_ms)), IN_TIME)


IN_TIME = "The batch is made in time: the wait is for a thread that wakes up late, not for the pipeline's work"

HAND_OVER = "Handing over a batch that is ready takes tf.data about 0.1 ms"


def _finding(
    waits: str, measures: tuple[Measure, ...], pipeline: InputPipeline | None, cacheable: Cacheable | None
) -> Finding:
    """Name the stage that limits the pipeline, unless that is tf.data's root, which no user can change."""
    critical = pipeline.critical if pipeline else None
    cause, remedy = "", Remedy(FIND_OUT, WITHOUT_MODEL)
    stages = [stage for stage in pipeline.stages if not stage.is_root] if pipeline else []
    table = [stage_table(stages, "work per step", lambda stage: stage.work_ms)] if pipeline else []
    if critical and not critical.is_root:
        cause = f"; {critical.title} limits the pipeline"
        remedy = _remedy(critical, cacheable)
    return Finding(
        summary=f"{waits} for input{cause}",
        evidence=(*measures, *table),
        remedies=(remedy,),
        effects=(Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),),
    )


def _remedy(critical: StageTime, cacheable: Cacheable | None) -> Remedy:
    if critical.python_ms > critical.work_ms / 2:
        action = f"Replace the Python code in {critical.title} with TensorFlow operations"
        return Remedy(action, PYTHON_FREE, critical.at)
    if critical.kind == "Map":
        action = f"Run {critical.title} on several threads"
        return Remedy(action, PARALLEL, critical.at, "parallel-map")
    if cacheable and cacheable.holds(critical.dataset):
        action = f"Make {critical.title} cheaper, or cache its output"
        changes = "the output has to fit into memory"
        return Remedy(action, _cached(critical), critical.at, "cache", changes=changes)
    return Remedy(f"Make {critical.title} cheaper", CHEAPER, critical.at)


def _cached(critical: StageTime) -> str:
    """Return the code of a cache, behind the map of the stage's function where it has a name."""
    function = critical.dataset.function if critical.dataset else ""
    mapped = f"{MAPPED.format(function)}\n" if function.isidentifier() else ""
    return f"{mapped}{CACHED}"


FIND_OUT = "Find the slow part of the pipeline: trace more steps, or time the dataset without the model"

WITHOUT_MODEL = "for batch in dataset.take(100):\n    pass"


PYTHON_FREE = """\
# TensorFlow operations run on all cores; Python runs on one
dataset = dataset.map(lambda path: tf.io.decode_jpeg(tf.io.read_file(path)),
                      num_parallel_calls=tf.data.AUTOTUNE)"""

MAPPED = "dataset = dataset.map({}, num_parallel_calls=tf.data.AUTOTUNE)"

PARALLEL = "dataset = dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE)"

CHEAPER = """\
# use fewer operations on smaller tensors, and apply to whole batches what does not need single examples:
dataset = dataset.batch(batch_size).map(function, num_parallel_calls=tf.data.AUTOTUNE)"""

CACHED = """\
# the output is identical in every epoch; if it fits into memory:
dataset = dataset.cache()  # right after the expensive stage, before shuffle and augmentation"""


def example(
    breakdown: Breakdown | None = None,
    *stages: StageTime,
    cacheable: Cacheable | None = None,
    steps: Steps | None = None,
    cost: TracingCost | None = None,
) -> Verdict:
    """Steps of 52 ms wait 43 ms for a sequential map."""
    waits = Breakdown.of(input=43.0, host=0.5, device=8.5)
    slow = (StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::Map", 50.0))
    made = stages if breakdown else slow
    return check(breakdown or waits, InputPipeline.of(*made) if made else None, cacheable, steps, cost)


sick = example


def healthy() -> Verdict:
    """Steps of 9 ms wait 0.1 ms."""
    return example(Breakdown.of(input=0.1, host=0.5, device=8.4))
