"""The step waits for its input.

## What it checks

The time per step in which the trainer waits for the next batch (`IteratorGetNext` on a tf.data
pipeline, infeed on a TPU) and neither the device nor a copy is at work: the *exposed* wait. Outlying
steps, such as the first one after a shuffle buffer had to be filled, do not count.

## Why it matters

While the trainer waits, the hardware does nothing. Nothing that speeds up the model helps a step
that waits for input; making batches faster, or beside the step, saves up to the whole wait.

## How to fix

Mend the stage that the report names: it limits the pipeline. In general and in this order: end the
pipeline in `.prefetch(tf.data.AUTOTUNE)`, give the slow `map` `num_parallel_calls=tf.data.AUTOTUNE`,
`.cache()` what is the same in every epoch, read files with `.interleave(...)`, apply cheap functions
to whole batches, and when all cores are busy move work to other machines with the tf.data service.

## Holds for

TensorFlow 2.3 and later, on CPU, GPU and TPU. What makes batches outside tf.data (a Python loop over
NumPy arrays) is not visible as input.

## Sources

- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
- [Analyze tf.data performance with the TF Profiler](https://www.tensorflow.org/guide/data_performance_analysis)
- [Plumber: Diagnosing and Removing Performance Bottlenecks in Machine Learning Data Pipelines](https://arxiv.org/abs/2111.04131)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.time.breakdown import INPUT_SHARE, READY_MS, Breakdown
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Cell,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        INPUT_SHARE,
        "of the step spent waiting for input: xprof's analyzer and DLProf call a run input-bound from "
        "5 % on",
        most=1.0,
    )
    ready_ms: float = limit(
        READY_MS,
        "ms of wait for input per step: handing over a batch that lies ready costs tf.data about "
        "0.1 ms, which is above 5 % of a step of a millisecond, yet nothing waits",
    )


LIMITS = Limits()


def check(
    breakdown: Breakdown,
    pipeline: InputPipeline | None,
    cacheable: Cacheable | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Compare the exposed wait for input with the step."""
    wait, step = breakdown["input"], breakdown.step_ms
    if breakdown.unseen_input and not wait:
        return NotApplicable(reason=breakdown.unseen_input)
    measures = (
        Measure("step time spent waiting for input", ratio(wait / step), ratio(limits.share)),
        Measure("wait for input per step", ms(wait), ms(limits.ready_ms)),
    )
    if wait < limits.share * step or wait < limits.ready_ms:
        summary = f"Steps wait {milliseconds(wait)} of {milliseconds(step)} ({percent(wait / step)}) for input"
        return Healthy(summary=summary, evidence=measures)
    return Finding(
        summary=f"Each step waits {milliseconds(wait)} of its {milliseconds(step)} for input{_because(pipeline)}",
        evidence=(*measures, *_stages(pipeline)),
        remedies=_remedies(pipeline, cacheable),
        effects=(Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),),
    )


def _critical(pipeline: InputPipeline | None) -> StageTime | None:
    """Return the stage that limits the pipeline; tf.data's own handle on it is none that can be mended."""
    critical = pipeline.critical if pipeline else None
    return None if critical and critical.is_root else critical


def _because(pipeline: InputPipeline | None) -> str:
    critical = _critical(pipeline)
    return f"; the stage that limits it is {critical.title}" if critical else ""


def _stages(pipeline: InputPipeline | None) -> tuple[Evidence, ...]:
    if pipeline is None:
        return ()
    columns = ("stage", "your line", "work per step", "threads at work", "calls per step")
    return (Table(columns, tuple(_row(stage) for stage in pipeline.stages if not stage.is_root)),)


def _row(stage: StageTime) -> tuple[Cell, ...]:
    where = stage.at or ("added by tf.data" if stage.injected else "unknown")
    return stage.title, where, ms(stage.work_ms), count(stage.concurrency), count(stage.calls)


def _remedies(pipeline: InputPipeline | None, cacheable: Cacheable | None) -> tuple[Remedy, ...]:
    critical = _critical(pipeline)
    if critical is None:
        return (
            Remedy(
                "Find out what makes the batches slowly: trace more steps, or time the loop without the model",
                "for batch in dataset.take(100):\n    pass",
            ),
        )
    if critical.python_ms > critical.work_ms / 2:
        action = (
            f"Replace the Python in {critical.title} by TensorFlow operations (see python-input)"
        )
        return (Remedy(action, PYTHON_FREE, critical.at),)
    if critical.kind == "Map":
        action = f"Run {critical.title} on several threads (see sequential-map)"
        return (Remedy(action, PARALLEL, critical.at, "parallel-map"),)
    if cacheable and cacheable.holds(critical.dataset):
        return (Remedy(f"Make {critical.title} cheaper, or do it once", CACHED, critical.at),)
    return (Remedy(f"Make {critical.title} cheaper", CHEAPER, critical.at),)


PYTHON_FREE = """\
# TensorFlow operations run on all cores; Python runs on one
dataset = dataset.map(lambda path: tf.io.decode_jpeg(tf.io.read_file(path)),
                      num_parallel_calls=tf.data.AUTOTUNE)"""

PARALLEL = "dataset = dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE)"

CHEAPER = """\
# fewer operations on smaller tensors; what needs no single example, on whole batches:
dataset = dataset.batch(batch_size).map(function, num_parallel_calls=tf.data.AUTOTUNE)"""

CACHED = """\
# its result is the same in every epoch: when it fits into memory
dataset = dataset.cache()  # right after the expensive stage, before shuffle and augmentation"""


def sick() -> Verdict:
    """Steps of 52 ms that wait 43 ms for a sequential map."""
    slow = StageTime(path="Root::Prefetch::Map", kind="Map", work_ms=50.0, wall_ms=50.0)
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    return check(
        Breakdown.of(input=43.0, host=0.5, device=8.5), InputPipeline.of(ahead, slow), None
    )


def healthy() -> Verdict:
    """Steps of 9 ms that hardly wait."""
    return check(Breakdown.of(input=0.1, host=0.5, device=8.4), None, None)
