"""Identical elements are recomputed every epoch.

## What it checks

Which functions of the input pipeline give the same output for the same element in every pass: those before any
random operation that neither run Python nor keep a state of their own. Their work counts if the step waits for
input, no cache stores their output, the run passes over its data at least twice, and the output fits into free
memory (size of an element times their number). On a CPU whose cores are all busy, their work also counts for
the time that it takes from the compute, because both share the cores. The rule looks for random operations in
the functions' graphs, including branches and loops.

## Why it matters

An image that was decoded and resized in the first epoch is the same image in the second. A cache does that
work once; after the first epoch, the pipeline only copies.

## How to fix

Put `.cache()` directly after the last function with identical output: before augmentation, because a cache
after a random function freezes its draws, and before `shuffle` and `repeat`, because a cache keeps the
order in which it was filled and is filled only when a pass ends. Output that does not fit into memory can go to
a fast local disk: `.cache("/path/to/file")`.

## Holds for

TensorFlow 2.3 and later, any hardware. The saving starts with the second epoch: the first one fills the
cache. Not checked if the number of elements (records in files) or their size (text, open shapes) is unknown
before they are read.

## Sources

- [Better performance with the tf.data API: caching](https://www.tensorflow.org/guide/data_performance#caching)
- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
"""

from dataclasses import dataclass, replace

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties, kind_of
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.humanize import number, percent, quantity
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, nbytes
from tfdoctor.verdict import (
    Effect,
    Finding,
    Healthy,
    Location,
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
    """When a cache pays, and how large it may be."""

    passes: float = limit(
        2.0,
        "Smallest number of passes over the data for which a cache is useful; the first pass only fills it",
    )
    memory: float = limit(
        0.5,
        "Largest share of the host's free memory that a cache may take; the rest is for buffers, checkpoints "
        "and later allocations of the run",
        most=1.0,
    )
    taken: float = limit(
        0.2,
        "Smallest share of the step that cacheable work takes from the compute, if the step does not wait for "
        "input but all cores are busy; for shares of 8 to 13 %, manual caches in three scripts of "
        "benchmarks/accuracy saved 15, 3 and -6 %",
        most=1.0,
    )


LIMITS = Limits()


def check(  # noqa: PLR0913, PLR0917 - what is made, what it costs, and where it would be kept
    cacheable: Cacheable,
    properties: DatasetProperties,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    memory: HostMemory | Unavailable,
    contention: CpuContention,
    limits: Limits = LIMITS,
) -> Verdict:
    """Find work that is identical in every pass, and check whether its output fits into memory."""
    stages = _stages_to_cache(cacheable, pipeline)
    work = sum(stage.work_ms for stage in stages)
    crowds_out = contention.taken_ms(work) >= limits.taken * breakdown.step_ms
    if not breakdown.waits_for_input and not crowds_out:
        return _not_waiting(pipeline, breakdown, work, contention, limits)
    if cacheable.last is None or not stages:
        return _nothing_to_cache(cacheable)
    verdict = _judged(cacheable.last, stages, cacheable.moved, properties, memory, limits)
    if not isinstance(verdict, Finding):
        return verdict
    return replace(verdict, effects=(*verdict.effects, *contention.relief(work)))


LITTLE = 0.05
"""Share of the step below which the report says that a cache would save little."""


def _stages_to_cache(cacheable: Cacheable, pipeline: InputPipeline) -> list[StageTime]:
    """Return the stages of the user's own functions, and of what only serves these."""
    if not any(dataset.function_at for dataset in cacheable.kept):
        return []
    ids = {dataset.id for dataset in cacheable.kept}
    working = (stage for stage in pipeline.stages if stage.work_ms)
    return [stage for stage in working if stage.dataset and stage.dataset.id in ids]


def _not_waiting(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    work_ms: float,
    contention: CpuContention,
    limits: Limits,
) -> Verdict:
    """Judge a step that does not wait: a CPU's compute may still lose cores to the input."""
    if pipeline.why_idle:
        return NotApplicable(reason=pipeline.why_idle)
    if contention.crowded is None and work_ms >= limits.taken * breakdown.step_ms:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, but producing its batches may take CPU cores from the compute: "
            "the load of the cores was not sampled; record with `tfdoctor profile`"
        )
    taken = contention.taken_ms(work_ms) / breakdown.step_ms
    if taken >= LITTLE:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, but identical work in every epoch takes cores from the compute "
            f"(up to {percent(taken)} of the step); reading a cache also takes time, so only a trial can show "
            "the gain"
        )
    return Healthy(summary=f"A cache would save little: {breakdown.little_wait}")


def _nothing_to_cache(cacheable: Cacheable) -> Verdict:
    if cacheable.unknown:
        return NotApplicable(reason=cacheable.why)
    cause = f": {cacheable.why}" if cacheable.why else ""
    frozen = (
        f"; {cacheable.frozen.function} draws random numbers before the cache, so all epochs see the same draws"
        if cacheable.frozen
        else ""
    )
    return Healthy(summary=f"No identical work is repeated in every epoch{cause}{frozen}")


def _judged(
    last: Dataset,
    stages: list[StageTime],
    moved: tuple[Dataset, ...],
    properties: DatasetProperties,
    memory: HostMemory | Unavailable,
    limits: Limits,
) -> Verdict:
    """Check how often a cache would be read, and whether it fits into memory."""
    passes, size = properties.passes, properties.nbytes(last)
    if passes is None:
        return NotApplicable(reason=f"{_recomputes(stages)}, but {UNKNOWN_PASSES}")
    if passes < limits.passes:
        amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
        return Healthy(
            summary=f"The run makes {amount} over its data, so a cache would not be read"
        )
    if size is None:
        return NotApplicable(reason=f"{_recomputes(stages)}, but {UNKNOWN_SIZE}")
    if isinstance(memory, Unavailable):
        return NotApplicable(reason=f"a cache would take {quantity(nbytes(size))}, but {memory}")
    return _weighed(stages, _remedy(last, moved), (passes, size), memory, limits)


def _weighed(
    stages: list[StageTime],
    remedy: Remedy,
    amount: tuple[float, int],
    memory: HostMemory,
    limits: Limits,
) -> Verdict:
    """Compare the size of a cache with the memory that it may take."""
    passes, size = amount
    budget = limits.memory * (memory.total - memory.used)
    measures = (
        Measure("passes over the data", count(passes), count(limits.passes)),
        Measure("memory of the cache", nbytes(size), nbytes(budget)),
    )
    if size <= budget:
        return _finding(stages, measures, remedy)
    summary = (
        f"{_recomputes(stages)}, but {quantity(nbytes(size))} do not fit into the {quantity(nbytes(budget))} "
        "of memory that a cache may take"
    )
    return Healthy(summary=summary, evidence=measures)


UNKNOWN_PASSES = "the number of passes over the data is unknown; let the run finish"

UNKNOWN_SIZE = (
    "the size of the output is unknown before it is read (text, files or an open shape); if it fits into memory, "
    "add `.cache()` directly after it to save the work from the second epoch on"
)


def _recomputes(stages: list[StageTime]) -> str:
    """Return the main clause: "decode recomputes identical elements every epoch"."""
    own = [stage.title for stage in stages if stage.dataset and stage.dataset.function_at]
    names = list(dict.fromkeys(own or [stage.title for stage in stages]))
    verb = "recomputes" if len(names) == 1 else "recompute"
    return f"{' and '.join(names)} {verb} identical elements every epoch"


def _finding(stages: list[StageTime], measures: tuple[Measure, ...], remedy: Remedy) -> Finding:
    rows = tuple((stage.title, stage.at or "unknown", ms(stage.work_ms)) for stage in stages)
    return Finding(
        summary=_recomputes(stages),
        evidence=(*measures, Table(("stage", "your line", "work per step"), rows)),
        remedies=(remedy,),
        effects=tuple(Effect(Stage.INPUT, 0.0, stage.path, ms(stage.work_ms)) for stage in stages),
    )


def _remedy(last: Dataset, moved: tuple[Dataset, ...]) -> Remedy:
    kinds = sorted({kind_of(dataset).lower() for dataset in moved})
    name = last.function if last.function.isidentifier() else "function"
    lines = [
        f"dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)",
        CACHE,
        *([REPEAT] if "repeat" in kinds else []),
        *([SHUFFLE] if "shuffle" in kinds else []),
    ]
    after = f", and move {' and '.join(kinds)} after the cache" if kinds else ""
    action = f"Cache the output of {last.function}{after}"
    return Remedy(action, "\n".join(lines), last.at, "" if kinds else "cache")


CACHE = "dataset = dataset.cache()  # before random operations; create the dataset once, before all epochs"
REPEAT = "dataset = dataset.repeat()  # after the cache, which is filled when a pass ends"
SHUFFLE = "dataset = dataset.shuffle(buffer_size)  # after the cache, for a different order in every epoch"


def sick() -> Verdict:
    """Decoding 8 MB of images takes 40 ms per step, in each of ten epochs."""
    return check(
        *_example(passes=10.0),
        _pipeline(),
        Breakdown.of(input=30.0, device=10.0),
        HostMemory(total=16e9, used=4e9),
        CpuContention(crowded=False),
    )


def healthy() -> Verdict:
    """The same pipeline in a run of a single epoch."""
    return check(
        *_example(passes=1.0),
        _pipeline(),
        Breakdown.of(input=30.0, device=10.0),
        HostMemory(total=16e9, used=4e9),
        CpuContention(crowded=False),
    )


DECODE = Dataset(
    id=1,
    kind="_MapDataset",
    inputs=(0,),
    function="decode",
    function_at=Location("train.py", 9),
    at=Location("train.py", 20),
    cardinality=1000,
    element="TensorSpec(shape=(2000,), dtype=tf.float32, name=None)",
    types=frozenset(("DecodePng",)),
    stateful=frozenset(),
)


def _example(passes: float) -> tuple[Cacheable, DatasetProperties]:
    properties = DatasetProperties((DECODE, Dataset(id=0, kind="_TensorSliceDataset")), passes)
    return Cacheable.measure(properties), properties


def _pipeline() -> InputPipeline:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::Map", kind="Map", work_ms=40.0, wall_ms=40.0, dataset=DECODE
    )
    return InputPipeline.of(ahead, stage)
