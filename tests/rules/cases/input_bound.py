"""The cases of input-bound: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.input_bound import check


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
