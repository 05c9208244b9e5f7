"""missing-prefetch: work is done while the step waits, and nothing that ran works ahead."""

import pytest

from tests.rules.cases.missing_prefetch import example
from tests.rules.kit import *
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS

FREE = Cores(4.0, busy=1.0)


def test_the_whole_wait_is_hidden_where_cores_are_known_to_be_free() -> None:
    for cores, bound in (
        (FREE, Bound.EXPECTED),
        (Cores(4.0, busy=1.0, others=2.0), Bound.AT_MOST),
        (Cores(4.0, busy=1.0, sampled=False), Bound.AT_MOST),
        (None, Bound.AT_MOST),
    ):
        assert [effect.bound for effect in as_finding(example(cores=cores)).effects] == [bound]


def test_a_map_right_before_the_trainer_is_found() -> None:
    written = Dataset(id=1, kind="_MapDataset", at=Location("t.py", 9))
    verdict = as_finding(example(StageTime.of("Root", 0.05), StageTime.of("Root::Map", 10.0, dataset=written)))
    (effect,) = verdict.effects
    assert (effect.stage, effect.overlaps, effect.subject) == (Stage.INPUT, True, "")
    assert verdict.remedies[0].at == Location("t.py", 9)
    assert "prefetch(tf.data.AUTOTUNE)" in verdict.remedies[0].code


@pytest.mark.parametrize("kind", ["Prefetch", "ParallelMapV2", "MapAndBatch", "ParallelBatch"])
def test_a_stage_that_works_ahead_is_enough(kind: str) -> None:
    ahead = StageTime.of(f"Root::{kind}")
    assert kind in as_healthy(example(ahead, StageTime.of(f"Root::{kind}::Map", 10.0))).summary


def test_a_prefetch_that_tf_data_added_is_called_so() -> None:
    ahead = StageTime.of("Root::Prefetch", name="inject/prefetch_Map/_3")
    verdict = as_healthy(example(ahead, StageTime.of("Root::Prefetch::Map", 10.0)))
    assert "tf.data" in verdict.summary


def test_a_prefetch_below_heavy_work_does_not_help() -> None:
    """prefetch() before map(): the map runs while the trainer waits."""
    below = StageTime.of("Root::Map::Prefetch")
    assert isinstance(example(StageTime.of("Root::Map", 10.0), below), Finding)


def test_a_prefetch_below_work_that_costs_nothing_does() -> None:
    above = StageTime.of("Root::MaxIntraOpParallelism", NEGLIGIBLE_MS)
    below = StageTime.of("Root::MaxIntraOpParallelism::Prefetch")
    assert isinstance(example(above, below), Healthy)


def test_both_limits() -> None:
    for work, wait, kind in (
        (NEGLIGIBLE_MS, 10.0, Finding),
        (NEGLIGIBLE_MS * 0.9, 10.0, Healthy),
        (10.0, 1.5, Finding),
        (10.0, 1.4, Healthy),
    ):
        assert isinstance(example(StageTime.of("Root::Map", work), wait=wait), kind)
