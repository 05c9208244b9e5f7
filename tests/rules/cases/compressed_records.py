"""The cases of compressed-records: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.files.compressed_records import check


def example(
    *others: StageTime,
    compression: str = "GZIP",
    each: float = 0.15,
    calls: float = 32.0,
    files: FileList | None = FileList(1),
    wait: float = 4.0,
) -> Verdict:
    """Each of 32 records takes 0.15 ms, in a step of 8 ms that waits."""
    records = Dataset(
        id=0,
        kind="TFRecordDatasetV2",
        parameters=DatasetParameters(compression_type=compression),
        files=files,
        at=Location("train.py", 46),
    )
    batch = Dataset(id=1, kind="_BatchDataset", inputs=(0,), parameters=DatasetParameters(batch_size=32))
    path = "Root::Prefetch::Batch::TFRecord"
    reader = StageTime.of(path, each * calls, calls=calls, dataset=records)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), reader, *others),
        DatasetProperties((batch, records)),
        Breakdown.of(input=wait, device=8.0 - wait),
    )


sick = example


def healthy() -> Verdict:
    """The same records without compression."""
    return example(compression="")
