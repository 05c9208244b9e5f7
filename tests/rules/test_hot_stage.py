"""hot-stage: the stages that steps wait for, where no other finding says why."""

import pytest

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


MAP = Dataset(
    id=1, kind="MapDataset", function="decode", function_at=Location("train.py", 4), at=Location("train.py", 9)
)

test_a_share_of_the_step_that_is_not_explained_decides = each_is(
    (example(StageTime.of("Root::Prefetch::Map", 4.0)), Finding),
    (example(StageTime.of("Root::Prefetch::Map", 3.99)), Healthy),
    (example(left=0.0), Healthy),  # an explained wait
    (example(subjects=frozenset(("Root::Prefetch::Map",))), Healthy),
    (example(StageTime.of("Root::Prefetch::Map")), NotApplicable),
)


def test_the_function_is_named_and_at_most_the_wait_promised() -> None:
    finding = as_finding(example(StageTime.of("Root::Prefetch::Map", 20.0, dataset=MAP), left=5.0))
    assert "Map(decode) at train.py:9" in finding.summary
    assert finding.remedies[0].at == Location("train.py", 4)
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(0.75)
    assert (effect.bound, effect.of and effect.of.value) == (Bound.AT_MOST, 5.0)


def test_the_generator_of_a_user_is_named_as_such() -> None:
    finding = as_finding(example(StageTime.of("Root::Prefetch::Generator", 20.0)))
    assert finding.remedies[0].action.startswith("Do less in the Python generator")


def test_a_stage_beside_the_slowest_segment_is_not_blamed() -> None:
    beside = StageTime.of("Root::Prefetch::ParallelMapV2", 8.0)
    slow = StageTime.of("Root::Prefetch::ParallelMapV2::Filter", 14.0)
    finding = as_finding(example(beside, slow))
    assert "Filter" in finding.summary
    assert [effect.subject for effect in finding.effects] == [slow.path]
