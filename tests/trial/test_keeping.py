"""The diff of what proved to help, also where the script is not below the folder of the run."""

from pathlib import Path

import pytest

from tests.cli.trial_recording import made
from tfdoctor.recording import Recording
from tfdoctor.trial import keeping
from tfdoctor.trial.originals import Originals
from tfdoctor.trial.variants import Variant


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Return the recording of `python ../jobs/train.py`, run in another folder."""
    for name in ("work", "jobs", "elsewhere"):
        (tmp_path / name).mkdir()
    command = ["python", "../jobs/train.py"]
    return Recording.open(made(tmp_path, cwd=str(tmp_path / "work"), command=command))


def kept(recording: Recording, *paths: Path) -> keeping.Kept:
    for path in paths:
        path.write_text("x = 1\n")
    variant = Variant("a", dict.fromkeys(paths, b"x = 2\n"))
    return keeping.diff([variant], Originals.of(paths), recording)


def test_a_file_below_the_run_is_named_from_there(recording: Recording, tmp_path: Path) -> None:
    found = kept(recording, tmp_path / "work" / "a.py")
    assert b"--- a/a.py" in found.diff
    assert (found.folder, found.left_out) == (tmp_path / "work", ())


def test_a_file_next_to_the_script_is_named_from_there(recording: Recording, tmp_path: Path) -> None:
    found = kept(recording, tmp_path / "jobs" / "train.py")
    assert b"--- a/train.py" in found.diff
    assert (found.folder, found.left_out) == (tmp_path / "jobs", ())


def test_a_file_elsewhere_is_said_to_be_left_out(recording: Recording, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "other.py"
    found = kept(recording, tmp_path / "jobs" / "train.py", other)
    assert b"other.py" not in found.diff
    assert (found.folder, found.left_out) == (tmp_path / "jobs", (other,))


def test_nothing_kept_is_an_empty_diff(recording: Recording) -> None:
    assert keeping.diff([], Originals.of([]), recording).diff == b""
