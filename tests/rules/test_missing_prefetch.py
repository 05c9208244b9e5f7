"""missing-prefetch: work is done while the step waits, and nothing that ran works ahead."""

from typing import Any

import pytest

from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import missing_prefetch
from tfdoctor.verdict import Bound, Finding, Healthy, Location, Stage, Verdict


def stage(path: str, work: float = 0.0, **more: Any) -> StageTime:
    kind = path.rpartition("::")[2]
    return StageTime(path=path, kind=kind, work_ms=work, wall_ms=work, **more)


FREE = Cores(4.0, busy=1.0)


def check(*stages: StageTime, wait: float = 10.0, cores: Cores | None = FREE) -> Verdict:
    return missing_prefetch.check(
        InputPipeline.of(*stages), Breakdown.of(input=wait, device=40.0 - wait), cores
    )


@pytest.mark.parametrize(
    ("cores", "bound"),
    [
        (FREE, Bound.EXPECTED),
        (Cores(4.0, busy=1.0, others=2.0), Bound.AT_MOST),
        (Cores(4.0, busy=1.0, sampled=False), Bound.AT_MOST),
        (None, Bound.AT_MOST),
    ],
)
def test_the_whole_wait_is_hidden_where_cores_are_known_to_be_free(
    cores: Cores | None, bound: Bound
) -> None:
    verdict = check(stage("Root::Map", 10.0), cores=cores)
    assert isinstance(verdict, Finding)
    assert [effect.bound for effect in verdict.effects] == [bound]


def test_a_map_right_before_the_trainer_is_found() -> None:
    written = Dataset(id=1, kind="_MapDataset", at=Location("t.py", 9))
    verdict = check(stage("Root", 0.05), stage("Root::Map", 10.0, dataset=written))
    assert isinstance(verdict, Finding)
    (effect,) = verdict.effects
    assert (effect.stage, effect.overlaps, effect.subject) == (Stage.INPUT, True, "")
    assert verdict.remedies[0].at == Location("t.py", 9)
    assert "prefetch(tf.data.AUTOTUNE)" in verdict.remedies[0].code


@pytest.mark.parametrize("kind", ["Prefetch", "ParallelMapV2", "MapAndBatch", "ParallelBatch"])
def test_a_stage_that_works_ahead_is_enough(kind: str) -> None:
    ahead = stage(f"Root::{kind}", asynchronous=True)
    verdict = check(ahead, stage(f"Root::{kind}::Map", 10.0))
    assert isinstance(verdict, Healthy)
    assert kind in verdict.summary


def test_a_prefetch_that_tf_data_added_is_called_so() -> None:
    ahead = stage("Root::Prefetch", asynchronous=True, name="inject/prefetch_Map/_3")
    verdict = check(ahead, stage("Root::Prefetch::Map", 10.0))
    assert isinstance(verdict, Healthy)
    assert "tf.data" in verdict.summary


def test_a_prefetch_below_heavy_work_does_not_help() -> None:
    """prefetch() before map(): the map runs while the trainer waits."""
    below = stage("Root::Map::Prefetch", asynchronous=True)
    assert isinstance(check(stage("Root::Map", 10.0), below), Finding)


def test_a_prefetch_below_work_that_costs_nothing_does() -> None:
    above = stage("Root::MaxIntraOpParallelism", NEGLIGIBLE_MS)
    below = stage("Root::MaxIntraOpParallelism::Prefetch", asynchronous=True)
    assert isinstance(check(above, below), Healthy)


@pytest.mark.parametrize(
    ("work", "wait", "kind"),
    [
        (NEGLIGIBLE_MS, 10.0, Finding),
        (NEGLIGIBLE_MS * 0.9, 10.0, Healthy),
        (10.0, 2.0, Finding),
        (10.0, 1.9, Healthy),
    ],
)
def test_both_limits(work: float, wait: float, kind: type) -> None:
    assert isinstance(check(stage("Root::Map", work), wait=wait), kind)
