"""hot-stage: the stages that steps wait for, where no other finding says why."""

import pytest

from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import hot_stage
from tfdoctor.verdict import Bound, Finding, Healthy, Location, NotApplicable, Stage, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
MAP = Dataset(
    id=1,
    kind="MapDataset",
    function="decode",
    function_at=Location("train.py", 4),
    at=Location("train.py", 9),
)


def stage(path: str, time_ms: float, dataset: Dataset | None = None) -> StageTime:
    kind = path.rpartition("::")[2]
    return StageTime(path=path, kind=kind, work_ms=time_ms, wall_ms=time_ms, dataset=dataset)


def check(
    *stages: StageTime, left: float = 12.0, subjects: frozenset[str] = frozenset()
) -> Verdict:
    """Judge the pipeline of steps of 20 ms, 12 of which wait."""
    return hot_stage.check(
        Unexplained({Stage.INPUT: left} if left else {}, subjects),
        Breakdown.of(input=12.0, device=8.0),
        InputPipeline.of(*stages),
    )


@pytest.mark.parametrize(("time_ms", "kind"), [(2.0, Finding), (1.99, Healthy)])
def test_a_share_of_the_step_decides(time_ms: float, kind: type) -> None:
    assert isinstance(check(AHEAD, stage("Root::Prefetch::Map", time_ms)), kind)


def test_a_wait_that_is_explained_is_not_reported_again() -> None:
    slow = stage("Root::Prefetch::Map", 12.0)
    assert isinstance(check(AHEAD, slow, left=0.0), Healthy)
    assert isinstance(check(AHEAD, slow, subjects=frozenset((slow.path,))), Healthy)


def test_the_function_is_named_and_at_most_the_wait_promised() -> None:
    finding = check(AHEAD, stage("Root::Prefetch::Map", 20.0, MAP), left=5.0)
    assert isinstance(finding, Finding)
    assert "Map(decode) at train.py:9" in finding.summary
    assert finding.remedies[0].at == Location("train.py", 4)
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(0.75)
    assert (effect.bound, effect.of and effect.of.value) == (Bound.AT_MOST, 5.0)


def test_a_stage_beside_the_slowest_segment_is_not_blamed() -> None:
    beside = StageTime(
        path="Root::Prefetch::ParallelMapV2",
        kind="ParallelMapV2",
        asynchronous=True,
        work_ms=8.0,
        wall_ms=8.0,
    )
    slow = stage("Root::Prefetch::ParallelMapV2::Filter", 14.0)
    finding = check(AHEAD, beside, slow)
    assert isinstance(finding, Finding)
    assert "Filter" in finding.summary
    assert [effect.subject for effect in finding.effects] == [slow.path]


def test_stages_without_time_explain_nothing() -> None:
    assert isinstance(check(AHEAD), NotApplicable)
