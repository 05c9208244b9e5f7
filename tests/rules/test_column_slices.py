"""column-slices: rows of many columns that are cut one by one and joined again."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.input.column_slices import GATHER_MS, check


def example(  # noqa: PLR0913 - what the verdict depends on
    columns: int = 9, work: float = 1.8, *, shape: str = "", between: str = "Shuffle", wait: float = 1.0,
    contention: CpuContention = CpuContention(crowded=False), cores: Cores | None = Cores(2.0, 1.9),
) -> Verdict:  # fmt: skip
    """Nine columns are cut into rows, shuffled, and joined in batches of 128, for steps of 2 ms."""
    spec = ", ".join(f"TensorSpec(shape=({shape}), dtype=tf.float32, name=None)" for _ in range(columns))
    chain = chained(
        dataset_of("TensorSlice", element=spec, at=Location("train.py", 10)),
        dataset_of(between),
        dataset_of("Batch", parameters=DatasetParameters(batch_size=128)),
    )
    stage = StageTime.of("Root::Prefetch::BatchV2", work, dataset=chain[0])
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), stage)
    step = Breakdown.of(input=wait, device=2.0 - wait)
    return check(pipeline, step, DatasetProperties(chain), contention, cores)


sick = example


def healthy() -> Verdict:
    """Two columns."""
    return example(2)


test_both_sides_of_each_limit = each_is(
    (example(6), Finding),
    (example(5), Healthy),
    (example(shape="1024"), Finding),
    (example(shape="1025"), Healthy),  # copied and not only handed on
    *((example(between=looks), Healthy) for looks in ("Map", "Cache", "Window", "Filter")),
    (example(work=9 * GATHER_MS + 0.11), Finding),  # a twentieth of the step
    (example(work=9 * GATHER_MS + 0.09), Healthy),
)


def test_a_step_that_does_not_wait_is_slowed_through_the_cores_alone() -> None:
    assert isinstance(example(wait=0.0), Healthy)
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=2.0)
    finding = as_finding(example(wait=0.0, contention=crowded))
    assert [effect.stage for effect in finding.effects] == [Stage.INPUT, Stage.DEVICE]
    others = Cores(2.0, 1.0, others=0.9)
    assert isinstance(example(wait=0.0, contention=crowded, cores=others), Healthy)


def test_what_is_left_is_a_gather_per_column() -> None:
    finding = as_finding(example(9, 1.8))
    (effect,) = finding.effects
    assert effect.bound is Bound.AT_MOST
    assert effect.scales == pytest.approx(9 * GATHER_MS / 1.8)
    (remedy,) = finding.remedies
    assert ".shuffle(count).batch(128)" in remedy.code
    assert remedy.at == Location("train.py", 10)
    assert ".shuffle" not in as_finding(example(between="Prefetch")).remedies[0].code
