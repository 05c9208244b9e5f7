"""A cache stands in the wrong place.

## What it checks

Two positions of `cache()` in the pipeline that feeds training. A cache that is never complete: after a `repeat()`
without end, or before a `take()` that ends every pass early. And a cache after a function that draws random
numbers, in a run that passes over its data more than once.

## Why it matters

A cache is read only when a whole pass has gone through it. After `repeat()`, no pass ever ends: all work is
done again for ever, and the cache takes more memory with every step. Before a shorter `take()`, TensorFlow discards
what was kept at the end of each pass. A cache after a random function keeps the draws of the first pass, so
that all epochs see the same augmentation.

## How to fix

Order the stages like this: read and decode, `take`, `cache`, `shuffle`, `repeat`, augment, `batch`, `prefetch`.

## Holds for

TensorFlow 2.3 and later, in recordings of `tfdoctor profile`. A cache after a `shuffle` is not reported, because
a later shuffle gives a new order all the same. What a cache in the right order costs in memory is judged by
late-shrink, and work that no cache keeps by uncached-preprocessing. A saving counts from the second pass on; where
the number of passes is unknown, it is an upper bound.

## Sources

- [tf.data.Dataset.cache](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache)
- [Better performance with the tf.data API: caching](https://www.tensorflow.org/guide/data_performance#caching)
"""

from dataclasses import dataclass, replace

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import REMADE, Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.input.repeated_work import RepeatedWork
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset, DatasetParameters, chained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import number
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import (
    Bound,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When the position of a cache matters."""

    passes: float = limit(
        2.0,
        "Smallest number of passes over the data for which a cache is read at all, or for which random draws "
        "are kept from one pass to the next",
    )


def check(  # noqa: PLR0913, PLR0917 - where the caches are, and what the work before them costs
    cacheable: Cacheable,
    properties: DatasetProperties,
    repeated: RepeatedWork | Unavailable,
    pipeline: InputPipeline | None,
    breakdown: Breakdown | None,
    contention: CpuContention | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for a cache that is never complete, then for one that keeps random draws."""
    wrong = cacheable.never or cacheable.frozen
    if wrong is None:
        return _in_order(properties)
    passes = properties.passes
    if passes is not None and passes < limits.passes:
        amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
        return Healthy(summary=f"The run makes {amount} over its data, so no cache is read")
    least = count(limits.passes)
    made = () if passes is None else (Measure("passes over the data", count(passes), least),)
    if cacheable.never is None:
        return _frozen(wrong, properties, made)
    finding = _never(cacheable.never, properties, pipeline)
    return _priced(finding, made, repeated, breakdown, contention)


def _caches(properties: DatasetProperties) -> list[Dataset]:
    return [stage for stage in properties.chain if kind_of(stage) == "Cache"]


def _in_order(properties: DatasetProperties) -> Verdict:
    caches = _caches(properties)
    if not caches:
        return Healthy(summary="The pipeline has no cache")
    if properties.remade:
        return NotApplicable(reason=REMADE)
    above = (stage for cache in caches for stage in properties.upstream(cache) if stage.function)
    unknown = next((stage.function for stage in above if repeatable(stage) is None), "")
    if unknown:
        return NotApplicable(
            reason=f"it is unknown whether {unknown}, before the cache, gives the same result in every pass"
        )
    return Healthy(summary="The cache comes before random functions, and each pass completes it")


def _never(cache: Dataset, properties: DatasetProperties, pipeline: InputPipeline | None) -> Finding:
    """Say which stage keeps the cache from being complete."""
    repeats = [stage for stage in properties.upstream(cache) if kind_of(stage) == "Repeat"]
    if repeats:
        summary = "cache() comes after repeat(), so it is never complete and grows with every step"
        lines, remedy = _lines(repeats[0], cache), _before_repeat(cache, repeats[0], properties)
    else:
        consumers = properties.chain[: properties.chain.index(cache)]
        take = next(stage for stage in reversed(consumers) if kind_of(stage) == "Take")
        summary = (
            f"cache() comes before take({take.parameters.count}), which ends each pass before the cache is complete"
        )
        lines = _lines(cache, take)
        remedy = Remedy("Put take() before cache()", TAKE_FIRST, cache.at)
    return Finding(
        summary=summary,
        evidence=(*_growth(cache, properties, pipeline), lines),
        remedies=(remedy,),
        severity=Severity.NOTE,
    )


def _growth(cache: Dataset, properties: DatasetProperties, pipeline: InputPipeline | None) -> tuple[Evidence, ...]:
    """Return by how much the cache grows, if the size of an element is known."""
    each = properties.element_bytes(cache)
    stages = pipeline.stages if pipeline else ()
    calls = [stage.calls for stage in stages if stage.dataset and stage.dataset.id == cache.id]
    if each is None or not calls:
        return ()
    return (Measure("memory added to the cache per step", nbytes(each * min(calls))),)


def _lines(*stages: Dataset) -> Table:
    return Table.of(
        stages,
        ("stage (in order of execution)", lambda stage: f"{kind_of(stage).lower()}()"),
        ("your line", lambda stage: stage.at),
    )


def _before_repeat(cache: Dataset, repeat: Dataset, properties: DatasetProperties) -> Remedy:
    """Put the cache before the repetition, and before all that differs from pass to pass."""
    above = list(properties.upstream(cache))
    random = [stage for stage in above if not repeatable(stage)]
    if not random:
        edit = "cache-before-repeat" if repeat in properties.sources(cache) else ""
        return Remedy("Put cache() before repeat()", CACHE_FIRST, cache.at, edit)
    first = random[-1].function or f"{kind_of(random[-1]).lower()}()"
    action = f"Put cache() before {first} and repeat(), after all that is the same in every pass"
    return Remedy(action, IN_ORDER, cache.at)


def _priced(
    finding: Finding,
    passes: tuple[Measure, ...],
    repeated: RepeatedWork | Unavailable,
    breakdown: Breakdown | None,
    contention: CpuContention | None,
) -> Finding:
    """Add what the work costs that a complete cache would spare; nothing where no step waits for it."""
    if isinstance(repeated, Unavailable) or breakdown is None:
        return finding
    relief = contention.relief(repeated.ms) if contention else ()
    effects = (*(repeated.effects if breakdown.waits_for_input else ()), *relief)
    if not effects:
        return finding
    if not passes:
        effects = tuple(replace(effect, bound=Bound.AT_MOST) for effect in effects)
    stages = Table.of(
        repeated.stages,
        ("stage that works in every pass", lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        ("work per step", lambda stage: ms(stage.work_ms)),
    )
    evidence = (*finding.evidence, *passes, stages)
    return replace(finding, evidence=evidence, effects=effects, severity=None)


def _frozen(function: Dataset, properties: DatasetProperties, passes: tuple[Measure, ...]) -> Verdict:
    """Report draws that are the same in all epochs; one epoch has nothing to repeat."""
    name = function.function
    if not passes:
        return NotApplicable(
            reason=f"{name} draws random numbers before the cache, but the number of passes over the data is "
            "unknown; let the run finish"
        )
    cache = next(
        cache for cache in _caches(properties) if function.id in {above.id for above in properties.upstream(cache)}
    )
    return Finding(
        summary=f"cache() comes after {name}, which draws random numbers: all epochs see the same draws",
        evidence=(*passes, _lines(function, cache)),
        remedies=(Remedy(f"Put cache() before {name}", AUGMENT_LAST, cache.at),),
        severity=Severity.NOTE,
    )


CACHE_FIRST = "dataset = dataset.cache().repeat()  # a pass ends, and with it the cache is complete"

TAKE_FIRST = "dataset = dataset.take(count).cache()"

IN_ORDER = """\
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
dataset = dataset.shuffle(buffer_size).repeat()
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)"""

AUGMENT_LAST = """\
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # draws anew in every epoch"""


def example(
    *stages: Dataset,
    passes: float | None = 10.0,
    work: float = 40.0,
    calls: float = 0.0,
    wait: float = 30.0,
    crowded: bool = False,
    remade: bool = False,
) -> Verdict:
    """A decode of 40 ms per step is repeated for ever, because the cache stands after repeat()."""
    chain = chained(*(stages or (SOURCE, DECODE, REPEAT, ENDLESS)), line=19)
    properties = DatasetProperties(chain, passes, remade)
    cacheable = Cacheable.measure(properties)
    ran = [(one, work if one.function else 0.0) for one in chain if one.function or calls]
    times = [
        StageTime.of(f"Root::Prefetch::{one.id}", taken, kind="Map", dataset=one, calls=calls or 1.0)
        for one, taken in ran
    ]
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *times)
    return check(
        cacheable,
        properties,
        RepeatedWork.measure(cacheable, properties, pipeline),
        pipeline,
        Breakdown.of(input=wait, device=40.0 - wait),
        CpuContention(crowded=crowded, compute_ms=30.0, cores=2.0),
    )


def mapped(*types: str, name: str = "decode", cardinality: int = 1000) -> Dataset:
    """Build a map whose function runs operations of these types."""
    return Dataset.of(
        "Map",
        function=name,
        function_at=Location("train.py", 9),
        types=frozenset(types),
        stateful=frozenset(kind for kind in types if "Random" in kind),
        cardinality=cardinality,
        element=ELEMENT,
    )


ELEMENT = "TensorSpec(shape=(2000,), dtype=tf.float32, name=None)"
SOURCE = Dataset.of("TensorSlice", cardinality=1000)
DECODE = mapped("DecodePng")
REPEAT = Dataset.of("Repeat", cardinality=-1, parameters=DatasetParameters(count=-1))
CACHE = Dataset.of("Cache", cardinality=1000, element=ELEMENT)
ENDLESS = replace(CACHE, cardinality=-1)

sick = example


def healthy() -> Verdict:
    """The cache stands before repeat()."""
    return example(SOURCE, DECODE, CACHE, REPEAT)
