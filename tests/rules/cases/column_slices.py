"""The cases of column-slices: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.column_slices import check


def example(  # noqa: PLR0913 - what the verdict depends on
    columns: int = 9,
    work: float = 1.8,
    *,
    shape: str = "",
    between: str = "Shuffle",
    wait: float = 1.0,
    contention: CpuContention = CpuContention(crowded=False),
    cores: Cores | None = Cores(2.0, 1.9),
) -> Verdict:
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
