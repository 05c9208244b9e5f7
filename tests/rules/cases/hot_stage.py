"""The cases of hot-stage: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.hot_stage import check


def example(
    *stages: StageTime, wait: float = 30.0, left: float | None = None, subjects: frozenset[str] = frozenset()
) -> Verdict:
    """A function takes 40 ms per step, and steps wait 30 ms for it."""
    slow = StageTime.of("Root::Prefetch::Map", 40.0)
    unexplained = wait if left is None else left
    return check(
        Unexplained({Stage.INPUT: unexplained} if unexplained else {}, subjects),
        Breakdown.of(input=wait, device=40.0 - wait),
        InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or [slow])),
    )


sick = example


def healthy() -> Verdict:
    """Steps do not wait."""
    return example(StageTime.of("Root::Prefetch::Map", 0.5), wait=0.1, left=0.0)
