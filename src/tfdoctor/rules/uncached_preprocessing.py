"""Elements that come out the same in every epoch are made anew in each.

## What it checks

Which functions of the pipeline that feeds the run give the same for the same element in every pass: those
before any random operation, none of which runs Python or keeps a state of its own. Where the step waits for
input, the work of these functions counts that no cache keeps, if the run passes over its data at least
twice and what they make fits into the memory that is free (size of an element times their number). On a CPU
whose cores are all at work it counts too for the time that it keeps from the compute, which shares them.
Random operations are looked for in the functions' graphs, branches and loops included.

## Why it matters

An image that was decoded and resized in the first epoch is the same image in the second. A cache does that
work once; after the first epoch the pipeline only copies.

## How to fix

Put `.cache()` right behind the last function that gives the same each time: before augmentation, for a
cache behind a random function freezes its draws, and before `shuffle` and `repeat`, for a cache keeps the
order in which it was filled, and is filled only when a pass ends. What does not fit into memory may go to a fast
local disk: `.cache("/path/to/file")`.

## Holds for

TensorFlow 2.3 and later, any hardware. The saving holds from the second epoch on: the first one fills the
cache. Not judged where the number of elements (records in files) or their size (text, open shapes) is not
known before they are read.

## Sources

- [Better performance with the tf.data API: caching](https://www.tensorflow.org/guide/data_performance#caching)
- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
"""

from dataclasses import dataclass, replace

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.time.breakdown import Breakdown
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
    """When it speaks."""

    passes: float = limit(
        2.0, "passes over the data from which a cache pays: the first one only fills it"
    )
    memory: float = limit(
        0.5,
        "of the host's free memory that a cache may take: the rest is for buffers, checkpoints and "
        "what the run has not asked for yet",
        most=1.0,
    )
    taken: float = limit(
        0.2,
        "of the step that the work keeps from the compute of a CPU whose cores are all at work, at most: "
        "from it on a step that does not wait for its input is judged too; of 8 to 13 %, caches by hand in three "
        "scripts of benchmarks/accuracy saved 15, 3 and -6 %",
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
    """Find work that is the same in every pass, and ask whether its result fits into memory."""
    stages = _work(cacheable, pipeline)
    work = sum(stage.work_ms for stage in stages)
    if not breakdown.waits_for_input and not _crowds_out(work, contention, breakdown, limits):
        return _not_waiting(pipeline, breakdown, work, contention, limits)
    if cacheable.last is None or not stages:
        return _nothing(cacheable)
    passes, size = properties.passes, properties.nbytes(cacheable.last)
    if passes is None or (size is None and passes >= limits.passes):
        words = MORE_THAN_ONCE if passes is None else OPEN
        return NotApplicable(reason=f"{_names(stages)} makes the same in every epoch, but {words}")
    if size is None or passes < limits.passes:
        return Healthy(
            summary=f"The run passes over its data {number(passes)} times: a cache would not be read"
        )
    if isinstance(memory, Unavailable):
        return NotApplicable(reason=f"a cache would take {quantity(nbytes(size))}, but {memory}")
    return _relieved(
        _weighed(cacheable, stages, (passes, size), memory, limits), contention.relief(work)
    )


def _relieved(found: Verdict, relief: tuple[Effect, ...]) -> Verdict:
    if not isinstance(found, Finding):
        return found
    return replace(found, effects=(*found.effects, *relief))


def _weighed(
    cacheable: Cacheable,
    stages: list[StageTime],
    amount: tuple[float, int],
    memory: HostMemory,
    limits: Limits,
) -> Verdict:
    passes, size = amount
    budget = limits.memory * (memory.total - memory.used)
    measures = (
        Measure("passes over the data", count(passes), count(limits.passes)),
        Measure("what a cache would hold", nbytes(size), nbytes(budget)),
    )
    if size <= budget and cacheable.last is not None:
        return _finding(cacheable.last, stages, measures, cacheable.moved)
    return Healthy(
        summary=f"{_names(stages)} makes {quantity(nbytes(size))} in each epoch, more than the "
        f"{quantity(nbytes(budget))} of memory that a cache may take",
        evidence=measures,
    )


MORE_THAN_ONCE = "how often the run passes over its data is not known; let it run to its end"

OPEN = (
    "how many bytes that are is not known before they are read (text, files, or an open shape); where they "
    "fit into memory, `.cache()` right behind it saves that work from the second epoch on"
)


def _work(cacheable: Cacheable, pipeline: InputPipeline) -> list[StageTime]:
    """Return the stages at work in the user's own functions, and in what only serves these."""
    if not any(one.function_at for one in cacheable.kept):
        return []
    kept = {one.id for one in cacheable.kept}
    return [s for s in pipeline.stages if s.work_ms and s.dataset and s.dataset.id in kept]


def _crowds_out(
    work_ms: float, contention: CpuContention, breakdown: Breakdown, limits: Limits
) -> bool:
    return contention.taken_ms(work_ms) >= limits.taken * breakdown.step_ms


def _not_waiting(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    work_ms: float,
    contention: CpuContention,
    limits: Limits,
) -> Verdict:
    if pipeline.why_idle:
        return NotApplicable(reason=pipeline.why_idle)
    if contention.crowded is None and work_ms >= limits.taken * breakdown.step_ms:
        return NotApplicable(reason=f"{breakdown.little_wait}, {COMPETES}")
    taken = contention.taken_ms(work_ms) / breakdown.step_ms
    if taken >= LITTLE:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, but what is the same in every epoch keeps up to {percent(taken)} of "
            "it from the compute, with which it shares the cores; reading a cache takes time as well, so only "
            "a trial tells"
        )
    return Healthy(summary=f"A cache would save little: {breakdown.little_wait}")


LITTLE = 0.05
"""Of the step: what a cache could save at most to be called little."""

COMPETES = (
    "but making its batches may keep the compute from the CPU's cores: how busy they were was not sampled; "
    "record with `tfdoctor profile`"
)


def _nothing(cacheable: Cacheable) -> Verdict:
    if "not known" in cacheable.why:
        return NotApplicable(reason=cacheable.why)
    because = f": {cacheable.why}" if cacheable.why else ""
    frozen = (
        f"; {cacheable.frozen.function} before the cache draws at random, so all epochs see the same draws"
        if cacheable.frozen
        else ""
    )
    return Healthy(summary=f"No work that is the same in every epoch is repeated{because}{frozen}")


def _names(stages: list[StageTime]) -> str:
    mine = [stage.title for stage in stages if stage.dataset and stage.dataset.function_at]
    return " and ".join(dict.fromkeys(mine or [stage.title for stage in stages]))


def _finding(
    last: Dataset,
    stages: list[StageTime],
    measures: tuple[Measure, ...],
    moved: tuple[Dataset, ...],
) -> Finding:
    rows = tuple((s.title, s.at or "unknown", ms(s.work_ms)) for s in stages)
    return Finding(
        summary=f"{_names(stages)} makes the same in every epoch, anew",
        evidence=(*measures, Table(("stage", "your line", "work per step"), rows)),
        remedies=(_remedy(last, moved),),
        effects=tuple(Effect(Stage.INPUT, 0.0, s.path, ms(s.work_ms)) for s in stages),
    )


def _remedy(last: Dataset, moved: tuple[Dataset, ...]) -> Remedy:
    at: Location | None = last.at
    kinds = sorted({"shuffle" if "Shuffle" in one.kind else "repeat" for one in moved})
    name = last.function if last.function.isidentifier() else "function"
    lines = [f"dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)", CACHE]
    lines += [
        "dataset = dataset.repeat()  # behind the cache, which is filled when a pass ends"
    ] * ("repeat" in kinds)
    lines += [
        "dataset = dataset.shuffle(buffer_size)  # behind it, so that each epoch has its order"
    ] * ("shuffle" in kinds)
    behind = f", and {' and '.join(kinds)} behind the cache" if kinds else ""
    return Remedy(
        f"Keep what {last.function} makes{behind}", "\n".join(lines), at, "" if kinds else "cache"
    )


CACHE = (
    "dataset = dataset.cache()  # before anything random; of a dataset made once, before all epochs"
)


def sick() -> Verdict:
    """Decoding takes 40 ms per step, in each of ten epochs, for 8 MB of images."""
    return check(
        *_example(passes=10.0),
        _pipeline(),
        Breakdown.of(input=30.0, device=10.0),
        HostMemory(total=16e9, used=4e9),
        CpuContention(crowded=False),
    )


def healthy() -> Verdict:
    """The same, in a run of a single epoch."""
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
