from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.cacheable import REMADE, Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.input.repeated_work import RepeatedWork
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.passes import kind_of

__doc__, CODE = page(__file__)

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
    return Remedy(action, CODE["in-order"], cache.at)


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
        remedies=(Remedy(f"Put cache() before {name}", CODE["augment-last"], cache.at),),
        severity=Severity.NOTE,
    )


CACHE_FIRST = "dataset = dataset.cache().repeat()  # a pass ends, and with it the cache is complete"

TAKE_FIRST = "dataset = dataset.take(count).cache()"
