"""compressed-records: local records that one thread decompresses in every epoch."""

from tests.rules.kit import *
from tfdoctor.rules.files.compressed_records import check


def example(
    *others: StageTime, compression: str = "GZIP", each: float = 0.15, calls: float = 32.0,
    files: FileList | None = FileList(1), wait: float = 4.0,
) -> Verdict:  # fmt: skip
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


test_both_sides_of_each_limit = each_is(
    (example(each=0.025), Finding),
    (example(each=0.0249), Healthy),
    (example(compression=""), Healthy),
    (example(files=FileList(1, "gs")), NotApplicable),  # across a network, compression may pay
    (example(files=None), NotApplicable),
    (example(wait=0.1), Healthy),
    (example(calls=0.0), NotApplicable),  # a trace without reading
)


def test_a_full_shuffle_buffer_does_not_hide_the_reading() -> None:
    """It is read when an epoch begins; the saving of the traced steps is then unknown."""
    verdict = as_finding(example(StageTime.of("Root::ParallelMap", 3.0), each=0.1, calls=4.0))
    assert not verdict.effects
    assert as_finding(example()).effects
