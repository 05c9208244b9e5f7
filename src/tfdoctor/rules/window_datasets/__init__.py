"""Each window of a series is a dataset.

## What it checks

Whether the pipeline cuts windows with `Dataset.window` and joins each by `flat_map` or `interleave`, in the part of
the pipeline that limits a waiting step, or with so much work that it takes a CPU's busy cores from the compute of a
step that does not wait. The time per window is compared with the time that copying its bytes needs.

## Why it matters

tf.data makes a dataset, a function call and an iterator for each window, and passes its elements on one by one.
That takes about a tenth of a millisecond per window; copying a window of a few hundred bytes takes less than a
microsecond.

## How to fix

Keep the series as one tensor. Batch the positions at which windows start, shuffle these numbers, and take all
windows of a batch with one `tf.gather`. Where windows follow each other at a fixed distance and need no shuffle,
`tf.signal.frame` cuts all of them at once. `keras.utils.timeseries_dataset_from_array` needs no code of your own
and makes no dataset per window, but calls a function for each.

## Holds for

TensorFlow 2.3 and later, for series that fit into memory. The saving is an upper bound. Windows of elements
whose shape is open are not checked. Maps between the windows and the batch count if their operations also take
whole batches.

## Sources

- [tf.data.Dataset.window](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#window)
- [tf.signal.frame](https://www.tensorflow.org/api_docs/python/tf/signal/frame)
- [keras.utils.timeseries_dataset_from_array](https://www.tensorflow.org/api_docs/python/tf/keras/utils/timeseries_dataset_from_array)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.window_datasets.window_stages import WindowJoin, WindowJoins
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Table, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "the windows have to be made in another way, whose order of examples has to be checked"

BYTES_PER_MS = 1e6
"""Least that one thread copies in ms: 1 GB/s, a tenth of a core's bandwidth; as in per-element-map."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When windows of datasets are reported."""

    windows: float = limit(8.0, "Windows per step up to which their overhead is too little to matter", least=1.0)
    copying: float = share_limit(
        0.3,
        "Largest share of the time per window that copying its bytes may need; above it, the data take the time",
    )
    taken: float = share_limit(
        0.2,
        "Smallest share of the step by which making windows slows the compute, on a CPU run that does not wait for "
        "input; as in uncached-preprocessing",
    )


def check(
    windows: WindowJoins,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    contention: CpuContention,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the time per window with what copying its bytes takes, in the slowest part of the pipeline."""
    if not windows.joins:
        return Healthy(summary="No stage joins windows that are datasets")
    if not breakdown.waits_for_input:
        found = max(windows.joins, key=_work)
        if contention.crowds_out(_work(found), breakdown.step_ms, limits.taken):
            return _judged(found, contention, limits)
        return Healthy(summary=f"Making windows does not slow training: {breakdown.little_wait}")
    limiting = [found for found in windows.joins if found.join in pipeline.limiting]
    if not limiting:
        return Healthy(summary="Making windows does not limit the pipeline")
    return _judged(max(limiting, key=lambda found: found.join.work_ms), contention, limits)


def _work(found: WindowJoin) -> float:
    """Return the work of all stages that make and join the windows, in ms per step."""
    return found.join.work_ms + sum(inner.work_ms for inner in found.inner)


def _judged(found: WindowJoin, contention: CpuContention, limits: Limits) -> Verdict:
    """Tell overhead per window from the copying of large windows."""
    each, number = found.window_ms, found.join.calls
    summary = f"{found.join.title} makes a dataset for each window: {milliseconds(each)}"
    if found.nbytes is None:
        return NotApplicable(reason=f"{summary}, but the size of a window is unknown")
    copying = min(1.0, found.nbytes / BYTES_PER_MS / each) if each else 1.0
    label = "maximum share of the time per window spent copying it"
    measures = (
        Measure("windows per step", count(number), count(limits.windows)),
        Measure("bytes of a window", nbytes(found.nbytes)),
        Measure("time per window", ms(each)),
        Measure.share(label, copying, limits.copying),
    )
    if number <= limits.windows or copying > limits.copying:
        return Healthy(summary=f"{summary}; this takes little beside the data", evidence=measures)
    return _finding(f"{summary}, {round(number)} times per step", measures, found, copying, contention)


def _finding(
    summary: str, measures: tuple[Measure, ...], found: WindowJoin, copying: float, contention: CpuContention
) -> Finding:
    """Return the finding, with what is saved when only the copying of the windows remains."""
    stages = (found.join, *found.inner, *found.maps)
    left = max(copying, 1.0 / found.batch) if found.batch else copying
    spared_ms = sum(stage.work_ms for stage in stages) * (1.0 - left)
    table = Table.of(
        stages,
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        ("work per step", lambda stage: ms(stage.work_ms)),
        ("calls per step", lambda stage: count(stage.calls)),
    )
    scaled = (stage.scaled(left, Bound.AT_MOST) for stage in stages if stage.work_ms)
    return Finding(
        summary=summary,
        evidence=(*measures, table),
        remedies=(
            Remedy(
                "Take all windows of a batch with one gather, or slice them from one array",
                GATHER,
                found.join.at,
                "sliding-windows",
                changes="the array of all windows is kept in memory",
            ),
        ),
        effects=(*scaled, *contention.relief(spared_ms)),
    )


GATHER = """\
series = tf.constant(series)
starts = tf.data.Dataset.range(len(series) - size).shuffle(len(series)).batch(batch_size)
dataset = starts.map(  # all windows of a batch: (batch_size, size + 1, ...)
    lambda at: tf.gather(series, at[:, None] + tf.range(size + 1, dtype=tf.int64)),
    num_parallel_calls=tf.data.AUTOTUNE,
)
dataset = dataset.map(lambda window: (window[:, :-1], window[:, -1])).prefetch(tf.data.AUTOTUNE)"""


def example(
    *inner: StageTime,
    work: float = 12.8,
    calls: float = 128.0,
    each: float | None = 164.0,
    step: Breakdown | None = None,
    contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:
    """Each of 128 windows per step takes 0.1 ms and holds 164 bytes."""
    made = Dataset(id=2, kind="_FlatMapDataset", at=Location("train.py", 12))
    join = StageTime.of("Root::Prefetch::FlatMap", work, calls=calls, dataset=made)
    return check(
        WindowJoins((WindowJoin(join, inner, nbytes=each, batch=128),)),
        InputPipeline.of(StageTime.of("Root::Prefetch"), join, *inner),
        step or Breakdown.of(input=9.0, device=4.0),
        contention,
    )


sick = example


def healthy() -> Verdict:
    """The same number of windows, each of 80 kB."""
    return example(each=80_000.0)
