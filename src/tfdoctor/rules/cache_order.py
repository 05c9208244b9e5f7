from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.cacheable import REMADE, Cacheable, RepeatedWork
from tfdoctor.facts.input.dataset_properties import repeatable

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
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
    never, wrong = cacheable.never, cacheable.never or cacheable.frozen
    if wrong is None:
        return _in_order(properties)
    passes = properties.passes
    if passes is not None and passes < limits.passes:
        amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
        return Healthy(summary=f"The run makes {amount} over its data, so no cache is read")
    made = () if passes is None else (Measure("passes over the data", count(passes), count(limits.passes)),)
    if never is None:
        return _frozen(wrong, properties, made)
    finding = _never(never, properties, pipeline)
    if isinstance(repeated, Unavailable) or breakdown is None:
        return finding
    # What the work costs that a complete cache would spare: nothing where no step waits for it.
    relief = contention.relief(repeated.ms) if contention else ()
    effects = (*(repeated.effects if breakdown.waits_for_input else ()), *relief)
    if not effects:
        return finding
    if not made:
        effects = tuple(replace(effect, bound=Bound.AT_MOST) for effect in effects)
    evidence = (*finding.evidence, *made, work_table(repeated.stages, heading="stage that works in every pass"))
    return replace(finding, evidence=evidence, effects=effects, severity=None)


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
        same = "gives the same result in every pass"
        return NotApplicable(reason=f"it is unknown whether {unknown}, before the cache, {same}")
    return Healthy(summary="The cache comes before random functions, and each pass completes it")


def _never(cache: Dataset, properties: DatasetProperties, pipeline: InputPipeline | None) -> Finding:
    """Say which stage keeps the cache from being complete."""
    repeat = next((stage for stage in properties.upstream(cache) if kind_of(stage) == "Repeat"), None)
    if repeat:
        summary = "cache() comes after repeat(), so it is never complete and grows with every step"
        lines, remedy = _lines(repeat, cache), _before_repeat(cache, repeat, properties)
    else:
        consumers = properties.chain[: properties.chain.index(cache)]
        take = next(stage for stage in reversed(consumers) if kind_of(stage) == "Take")
        ends = "which ends each pass before the cache is complete"
        summary = f"cache() comes before take({take.parameters.count}), {ends}"
        lines = _lines(cache, take)
        remedy = Remedy("Put take() before cache()", "dataset = dataset.take(count).cache()", cache.at)
    each = properties.element_bytes(cache)
    stages = pipeline.stages if pipeline else ()
    calls = [stage.calls for stage in stages if stage.dataset and stage.dataset.id == cache.id]
    grows = each is not None and calls and Measure("memory added to the cache per step", nbytes(each * min(calls)))
    evidence = (grows, lines) if grows else (lines,)
    return Finding(summary=summary, evidence=evidence, remedies=(remedy,), severity=Severity.NOTE)


def _lines(*stages: Dataset) -> Table:
    return Table.of(
        stages,
        ("stage (in order of execution)", lambda stage: f"{kind_of(stage).lower()}()"),
        ("your line", lambda stage: stage.at),
    )


def _before_repeat(cache: Dataset, repeat: Dataset, properties: DatasetProperties) -> Remedy:
    """Put the cache before the repetition, and before all that differs from pass to pass."""
    random = [stage for stage in properties.upstream(cache) if not repeatable(stage)]
    if not random:
        code = "dataset = dataset.cache().repeat()  # a pass ends, and with it the cache is complete"
        edit = "cache-before-repeat" if repeat in properties.sources(cache) else ""
        return Remedy("Put cache() before repeat()", code, cache.at, edit)
    first = random[-1].function or f"{kind_of(random[-1]).lower()}()"
    action = f"Put cache() before {first} and repeat(), after all that is the same in every pass"
    return Remedy(action, CODE["in-order"], cache.at)


def _frozen(function: Dataset, properties: DatasetProperties, passes: tuple[Measure, ...]) -> Verdict:
    """Report draws that are the same in all epochs; one epoch has nothing to repeat."""
    name = function.function
    if not passes:
        return NotApplicable(
            reason=f"{name} draws random numbers before the cache, but the number of passes over the data is "
            "unknown; let the run finish"
        )
    behind = (cache for cache in _caches(properties) if function.id in {s.id for s in properties.upstream(cache)})
    cache = next(behind)
    return Finding(
        summary=f"cache() comes after {name}, which draws random numbers: all epochs see the same draws",
        evidence=(*passes, _lines(function, cache)),
        remedies=(Remedy(f"Put cache() before {name}", CODE["augment-last"], cache.at),),
        severity=Severity.NOTE,
    )
