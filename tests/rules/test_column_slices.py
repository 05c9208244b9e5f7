"""column-slices: rows of many columns that are cut one by one and joined again."""

from tests.rules.kit import *
from tfdoctor.rules.input.column_slices import GATHER_MS, check


def example(  # noqa: PLR0913 - what the verdict depends on
    columns: int = 9, work: float = 1.8, *, shape: str = "", between: str = "Shuffle", wait: float = 1.0,
    contention: CpuContention = CpuContention(crowded=False), cores: Cores | None = Cores(2.0, 1.9),
) -> Verdict:  # fmt: skip
    """Nine columns are cut into rows, shuffled, and joined in batches of 128, for steps of 2 ms."""
    spec = ", ".join(f"TensorSpec(shape=({shape}), dtype=tf.float32, name=None)" for _ in range(columns))
    chain = chained(
        dataset_of("TensorSlice", element=spec, at=script(10)),
        dataset_of(between),
        dataset_of("Batch", parameters=DatasetParameters(batch_size=128)),
    )
    stage = stage_time("Root::Prefetch::BatchV2", work, dataset=chain[0])
    pipeline = InputPipeline.of(PREFETCH, stage)
    step = Breakdown.of(input=wait, device=2.0 - wait)
    return check(pipeline, step, DatasetProperties(chain), contention, cores)


sick = example
healthy = described("Two columns.", example, 2)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["what is left is a gather per column"] = example(9, 1.8)
    told["six columns, and five"] = example(6), example(5)
    told["1024 values in a row are handed on, more copied"] = example(shape="1024"), example(shape="1025")
    told["a stage looks at the rows"] = [example(between=looks) for looks in ("Map", "Cache", "Window", "Filter")]
    told["without shuffle"] = example(between="Prefetch")
    told["a twentieth of the step, and less"] = [example(work=9 * GATHER_MS + ms) for ms in (0.11, 0.09)]
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=2.0)
    others = Cores(2.0, 1.0, others=0.9)
    told["a step that does not wait is slowed through the cores, which others may use"] = example(wait=0.0)
    told[...] = example(wait=0.0, contention=crowded), example(wait=0.0, contention=crowded, cores=others)
