"""A log that tells of more time than passed is left out, and a note says so."""

import json
from pathlib import Path

import pytest

from tfdoctor.recording.files import Notes, run_log
from tfdoctor.recording.manifest import Manifest, RunTimes
from tfdoctor.recording.run_log import RUN_LOG, RunLog

S = 1_000_000_000


def read(folder: Path, end: float, told_ms: float, manifest: Manifest | None, notes: Notes) -> RunLog | None:
    lines = [{"kind": "process", "pid": 7}, {"kind": "bucket", "start": 0.0, "end": end, "calls": {"0": told_ms}}]
    (folder / RUN_LOG).write_text("\n".join(map(json.dumps, lines)))
    return run_log(folder, notes, manifest)


def lived(seconds: int | None, pid: int = 7) -> Manifest:
    ended = None if seconds is None else (100 + seconds) * S
    return Manifest(times=RunTimes(started_ns=100 * S, ended_ns=ended, pid=pid))


@pytest.mark.parametrize(
    ("end", "told_ms", "manifest"),
    [
        (5.0, 5000.0, lived(6)),
        (5.0, 5000.0, None),
        (9e5, 9e8, lived(None)),  # it is running
        (9e5, 9e8, lived(6, pid=8)),  # a process that went on without tfdoctor
    ],
)
def test_times_that_can_be_are_kept(end: float, told_ms: float, manifest: Manifest | None, tmp_path: Path) -> None:
    notes = Notes()
    assert read(tmp_path, end, told_ms, manifest, notes)
    assert notes.texts == []


@pytest.mark.parametrize(("end", "told_ms"), [(2e9, 2e12), (5.0, 2e12)])
def test_times_that_cannot_be_are_left_out(end: float, told_ms: float, tmp_path: Path) -> None:
    notes = Notes()
    assert read(tmp_path, end, told_ms, lived(6), notes) is None
    (note,) = notes.texts
    assert "2,000,000,000 s" in note
    assert "the clock of the process was changed" in note
