"""A log that tells of more time than passed is left out, and a note says so."""

import pytest

from tfdoctor.recording.files import Notes, possible
from tfdoctor.recording.manifest import Manifest, RunTimes
from tfdoctor.recording.run_log import Bucket, RunLog, RunProcess

S = 1_000_000_000


def log(*buckets: Bucket) -> RunLog:
    return RunLog(RunProcess(pid=7), {}, {}, buckets)


def lived(seconds: int | None, pid: int = 7) -> Manifest:
    ended = None if seconds is None else (100 + seconds) * S
    return Manifest(times=RunTimes(started_ns=100 * S, ended_ns=ended, pid=pid))


@pytest.mark.parametrize(
    ("told", "manifest"),
    [
        (Bucket(0.0, 5.0, {"0": 5000.0}), lived(6)),
        (Bucket(0.0, 5.0, {"0": 5000.0}), None),
        (Bucket(0.0, 9e5, {"0": 9e8}), lived(None)),  # it is running
        (Bucket(0.0, 9e5, {"0": 9e8}), lived(6, pid=8)),  # a process that went on without tfdoctor
    ],
)
def test_times_that_can_be_are_kept(told: Bucket, manifest: Manifest | None) -> None:
    notes = Notes()
    run = log(told)
    assert possible(run, manifest, notes) is run
    assert notes.texts == []


@pytest.mark.parametrize(
    ("told", "says"),
    [(Bucket(0.0, 2e9, {"0": 2e12}), "2,000,000,000 s"), (Bucket(0.0, 5.0, {"0": 2e12}), "2,000,000,000 s")],
)
def test_times_that_cannot_be_are_left_out(told: Bucket, says: str) -> None:
    notes = Notes()
    assert possible(log(told), lived(6), notes) is None
    (note,) = notes.texts
    assert says in note
    assert "the clock of the process was changed" in note


def test_no_log_is_no_log() -> None:
    assert possible(None, lived(6), Notes()) is None
