"""compressed-records: local records that one thread decompresses in every epoch."""

import pytest

from tests.rules.cases.compressed_records import example
from tests.rules.verdicts import as_finding
from tfdoctor.facts.input.input_pipeline import StageTime
from tfdoctor.facts.run.program import FileList
from tfdoctor.terms.verdict import Finding, Healthy, NotApplicable


@pytest.mark.parametrize(("each", "kind"), [(0.025, Finding), (0.0249, Healthy)])
def test_reading_must_take_a_share_of_the_step(each: float, kind: type) -> None:
    assert isinstance(example(each=each), kind)


def test_plain_records_are_healthy() -> None:
    assert isinstance(example(compression=""), Healthy)


@pytest.mark.parametrize("files", [FileList(1, "gs"), None])
def test_remote_and_unknown_files_are_not_judged(files: FileList | None) -> None:
    """Across a network, compression may pay."""
    assert isinstance(example(files=files), NotApplicable)


def test_a_step_that_does_not_wait_is_healthy() -> None:
    assert isinstance(example(wait=0.1), Healthy)


def test_a_full_shuffle_buffer_does_not_hide_the_reading() -> None:
    """It is read when an epoch begins; the saving of the traced steps is then unknown."""
    verdict = as_finding(example(StageTime.of("Root::ParallelMap", 3.0), each=0.1, calls=4.0))
    assert not verdict.effects
    assert as_finding(example()).effects


def test_a_trace_without_reading_is_not_judged() -> None:
    assert isinstance(example(calls=0.0), NotApplicable)
