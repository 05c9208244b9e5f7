"""The cases of tuning-loop: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResults
from tfdoctor.facts.phases.run_growth import RunGrowth
from tfdoctor.rules.run.tuning_loop import check

FIT = made_call(
    RunCall.FIT, Location("tune.py", 31), 12, 55e3 / 12, name="Sequential.fit", looped=True, models=12
)  # fmt: skip


RESIDENT = Trend(
    what=Grows.RESIDENT, first=0.9e9, last=2.0e9, slope=1.8e7, low=1.7e7, high=1.9e7, steady=True, points=60
)  # fmt: skip


STEP = TracedDefinition(name="one_step_on_iterator", at=FIT.at, tracings=12, ms=6e3, first_ms=500.0, made=12)


PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 50e3, Phase.TRACING: 6e3, Phase.IMPORTS: 14e3})


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: MadeCall,
    fit: MadeCall | None = FIT,
    resident: Trend | None = RESIDENT,
    counts: tuple[Trend, ...] = (),
    step: TracedDefinition = STEP,
    phases: RunPhases = PHASES,
    limit: float | None = 32e9,
    kept: KeptResults | None = None,
    ran_out: bool = False,
) -> Verdict:
    """Judge 12 models that are fitted one after another."""
    filling = FillingMemory(trend=resident, limit=limit, ran_out=ran_out) if resident else None
    return check(
        phases,
        RunCalls((*([fit] if fit else []), *others), fits=12),
        MemoryTrends((filling,)) if filling else None,
        RunGrowth((resident, *counts), 60.0) if resident else None,
        RunTraces((step,)),
        kept,
    )


def sick() -> Verdict:
    """Each of 12 models leaves 90 MB and 900 operations."""
    graph = replace(RESIDENT, what=Grows.GRAPH, first=900, last=10_800)
    return example(counts=(graph,))


def healthy() -> Verdict:
    """The session is cleared, and memory stays as it is after the first models."""
    return example(resident=replace(RESIDENT, last=0.91e9, steady=False))
