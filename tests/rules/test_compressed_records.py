"""compressed-records: local records that one thread decompresses in every epoch."""

from tests.rules.kit import *
from tfdoctor.rules.files.compressed_records import check


def example(
    *others: StageTime, compression: str = "GZIP", each: float = 0.15, calls: float = 32.0,
    files: FileList | None = FileList(1), wait: float = 4.0,
) -> Verdict:  # fmt: skip
    """Each of 32 records takes 0.15 ms, in a step of 8 ms that waits."""
    kind, parameters = "TFRecordDatasetV2", DatasetParameters(compression_type=compression)
    records = Dataset(id=0, kind=kind, parameters=parameters, files=files, at=script(46))
    batch = Dataset(id=1, kind="_BatchDataset", inputs=(0,), parameters=DatasetParameters(batch_size=32))
    path = "Root::Prefetch::Batch::TFRecord"
    reader = stage_time(path, each * calls, calls=calls, dataset=records)
    return check(
        InputPipeline.of(PREFETCH, reader, *others),
        DatasetProperties((batch, records)),
        Breakdown.of(input=wait, device=8.0 - wait),
    )


sick = example
healthy = described("The same records without compression.", example, compression="")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a tenth of the step, and less"] = example(each=0.025), example(each=0.0249)
    told["records that are not compressed"] = example(compression="")
    told["across a network, compression may pay"] = example(files=FileList(1, "gs"))
    told["unknown files"] = example(files=None)
    told["a step that does not wait"] = example(wait=0.1)
    told["a trace without reading"] = example(calls=0.0)
    # It is read when an epoch begins
    told["a full shuffle buffer does not hide the reading, of which the saving is unknown"] = example(
        stage_time("Root::ParallelMap", 3.0), each=0.1, calls=4.0
    )
