"""missing-prefetch: work is done while the step waits, and nothing that ran works ahead."""

from tests.rules.kit import *
from tfdoctor.facts.input.input_pipeline import NEGLIGIBLE_MS
from tfdoctor.rules.input.missing_prefetch import check


def example(*stages: StageTime, wait: float = 10.0, cores: Cores | None = Cores(4.0, busy=1.0)) -> Verdict:
    """A map of 10 ms runs right before the training loop, without prefetch."""
    pipeline = InputPipeline.of(*(stages or [StageTime.of("Root::Map", 10.0)]))
    return check(pipeline, Breakdown.of(input=wait, device=30.0 - wait), cores)


sick = example


def healthy() -> Verdict:
    """The same map, with a prefetch that tf.data adds by itself."""
    ahead = StageTime.of("Root::Prefetch", name="inject/prefetch_MapDataset/_3")
    return example(ahead, StageTime.of("Root::Prefetch::Map", 10.0), wait=0.0, cores=None)


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


def test_a_stage_that_works_ahead_is_enough() -> None:
    for kind in ("Prefetch", "ParallelMapV2", "MapAndBatch", "ParallelBatch"):
        ahead = StageTime.of(f"Root::{kind}")
        assert kind in as_healthy(example(ahead, StageTime.of(f"Root::{kind}::Map", 10.0))).summary
    added = StageTime.of("Root::Prefetch", name="inject/prefetch_Map/_3")
    assert "tf.data" in as_healthy(example(added, StageTime.of("Root::Prefetch::Map", 10.0))).summary


def test_a_prefetch_below_heavy_work_does_not_help() -> None:
    """prefetch() before map(): the map runs while the trainer waits. Below work that costs nothing it helps."""
    heavy = StageTime.of("Root::Map", 10.0), StageTime.of("Root::Map::Prefetch")
    light = "Root::MaxIntraOpParallelism"
    cheap = StageTime.of(light, NEGLIGIBLE_MS), StageTime.of(f"{light}::Prefetch")
    assert kinds(example(*heavy), example(*cheap)) == [Finding, Healthy]


def test_both_limits() -> None:
    for work, wait, kind in (
        (NEGLIGIBLE_MS, 10.0, Finding),
        (NEGLIGIBLE_MS * 0.9, 10.0, Healthy),
        (10.0, 1.5, Finding),
        (10.0, 1.4, Healthy),
    ):
        assert isinstance(example(StageTime.of("Root::Map", work), wait=wait), kind)
