"""compressed-records: local records that one thread decompresses in every epoch."""

import pytest

from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset, DatasetParameters, FileList
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import compressed_records
from tfdoctor.verdict import Finding, Healthy, NotApplicable, Verdict

AHEAD = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
LOCAL = FileList(1)


def check(
    each: float = 0.1,
    calls: float = 40.0,
    wait: float = 5.0,
    compression: str = "ZLIB",
    files: FileList | None = LOCAL,
    other: float = 0.0,
) -> Verdict:
    """Steps of 10 ms take 40 records."""
    path = "Root::Prefetch::TFRecord"
    reader = StageTime(
        path=path, kind="TFRecord", work_ms=each * calls, wall_ms=each * calls, calls=calls
    )
    parse = StageTime(
        path="Root::Map", kind="ParallelMap", work_ms=other, wall_ms=other, asynchronous=True
    )
    parameters = DatasetParameters(compression_type=compression)
    chain = (
        Dataset(
            id=1, kind="_BatchDataset", inputs=(0,), parameters=DatasetParameters(batch_size=40)
        ),
        Dataset(id=0, kind="TFRecordDatasetV2", parameters=parameters, files=files),
    )
    return compressed_records.check(
        InputPipeline.of(AHEAD, reader, parse),
        DatasetProperties(chain),
        Breakdown.of(input=wait, device=10.0 - wait),
    )


@pytest.mark.parametrize(("each", "kind"), [(0.025, Finding), (0.0249, Healthy)])
def test_reading_must_take_a_share_of_the_step(each: float, kind: type) -> None:
    assert isinstance(check(each), kind)


def test_plain_records_are_healthy() -> None:
    assert isinstance(check(compression=""), Healthy)


@pytest.mark.parametrize("files", [FileList(1, "gs"), None])
def test_remote_and_unknown_files_are_not_judged(files: FileList | None) -> None:
    """Across a network, compression may pay."""
    assert isinstance(check(files=files), NotApplicable)


def test_a_step_that_does_not_wait_is_healthy() -> None:
    assert isinstance(check(wait=0.1), Healthy)


def test_a_full_shuffle_buffer_does_not_hide_the_reading() -> None:
    """It is read when an epoch begins; the saving of the traced steps is then unknown."""
    verdict = check(calls=4.0, other=3.0)
    assert isinstance(verdict, Finding)
    assert not verdict.effects
    limiting = check()
    assert isinstance(limiting, Finding)
    assert limiting.effects


def test_a_trace_without_reading_is_not_judged() -> None:
    assert isinstance(check(calls=0.0), NotApplicable)
