from tfdoctor.facts.input.cacheable import REMADE
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

IN_ORDER = "The cache comes before random functions, and each pass completes it"


class Limits(RuleLimits):
    passes: float = limit(2.0)


def check(  # noqa: PLR0913, PLR0917 - where the caches are, and what the work before them costs
    cacheable: Cacheable, properties: DatasetProperties, repeated: RepeatedWork | Unavailable,
    pipeline: InputPipeline | None, breakdown: Breakdown | None, contention: CpuContention | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for a cache that is never complete, then for one that keeps random draws."""
    never, wrong = cacheable.never, cacheable.never or cacheable.frozen
    caches = [stage for stage in properties.chain if kind_of(stage) == "Cache"]
    if wrong is None:
        above = (stage for cache in caches for stage in properties.upstream(cache) if stage.function)
        unknown = next((stage.function for stage in above if repeatable(stage) is None), "")
        why = f"it is unknown whether {unknown}, before the cache, gives the same result in every pass"
        reason = why_not((properties.remade, REMADE), (unknown, why)) if caches else ""
        return nothing(IN_ORDER if caches else "The pipeline has no cache", reason)
    passes = properties.passes
    if passes is not None and passes < limits.passes:
        amount = f"{number(passes)} {'pass' if passes == 1 else 'passes'}"
        return Healthy(summary=f"The run makes {amount} over its data, so no cache is read")
    made = () if passes is None else (Measure("passes over the data", count(passes), count(limits.passes)),)
    if never is None:
        name = wrong.function  # one epoch has nothing to repeat
        if not made:
            unknown = "the number of passes over the data is unknown; let the run finish"
            return NotApplicable(reason=f"{name} draws random numbers before the cache, but {unknown}")
        cache = next(one for one in caches if wrong.id in {stage.id for stage in properties.upstream(one)})
        return Finding(
            summary=f"cache() comes after {name}, which draws random numbers: all epochs see the same draws",
            evidence=(*made, _lines(wrong, cache)),
            remedies=(Remedy(f"Put cache() before {name}", CODE["augment-last"], cache.at),),
            severity=Severity.NOTE,
        )
    finding = _never(never, properties, pipeline)
    # What the work costs that a complete cache would spare: nothing where no step waits for it.
    effects: tuple[Effect, ...] = ()
    if not isinstance(repeated, Unavailable) and breakdown:
        relief = contention.relief(repeated.ms) if contention else ()
        effects = (*(repeated.effects if breakdown.waits_for_input else ()), *relief)
    if isinstance(repeated, Unavailable) or not effects:
        return finding
    if not made:
        effects = tuple(replace(effect, bound=Bound.AT_MOST) for effect in effects)
    evidence = (*finding.evidence, *made, work_table(repeated.stages, heading="stage that works in every pass"))
    return replace(finding, evidence=evidence, effects=effects, severity=None)


def _never(cache: Dataset, properties: DatasetProperties, pipeline: InputPipeline | None) -> Finding:
    """Say which stage keeps the cache from being complete."""
    repeat = next((stage for stage in properties.upstream(cache) if kind_of(stage) == "Repeat"), None)
    if repeat:
        summary = "cache() comes after repeat(), so it is never complete and grows with every step"
        random = [stage for stage in properties.upstream(cache) if not repeatable(stage)]
        if random:  # the cache belongs before the repetition, and before all that differs from pass to pass
            first = random[-1].function or f"{kind_of(random[-1]).lower()}()"
            action = f"Put cache() before {first} and repeat(), after all that is the same in every pass"
            code, edit = CODE["in-order"], ""
        else:
            action, code = "Put cache() before repeat()", "dataset = dataset.cache().repeat()"
            code += "  # a pass ends, and with it the cache is complete"
            edit = "cache-before-repeat" if repeat in properties.sources(cache) else ""
        lines, remedy = _lines(repeat, cache), Remedy(action, code, cache.at, edit)
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
