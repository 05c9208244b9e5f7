"""A file that changes while a trial runs ends it: runs as it is would see another text than variants."""

import os
from pathlib import Path

import pytest

from tests.cli.trial_recording import made
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import InputError
from tfdoctor.trial import keeping
from tfdoctor.trial.originals import Originals
from tfdoctor.trial.variants import Variant


def test_files_that_stay_are_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    originals = Originals.of([path])
    originals.must_be_unchanged()
    os.utime(path, ns=(1, 1))  # touched: the text is the same
    originals.must_be_unchanged()


@pytest.mark.parametrize("text", ["x = 22\n", "x = 2\n", None])
def test_a_file_that_changes_is_one_sentence(tmp_path: Path, text: str | None) -> None:
    """Trap: of the same size, and with the former time, as some editors and tools leave it."""
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    originals, before = Originals.of([path]), path.stat()
    path.unlink()
    if text is not None:
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match=r"train.py changed while the trial ran, so nothing is"):
        originals.must_be_unchanged()


def test_the_kept_changes_do_not_revert_an_edit_made_meanwhile(tmp_path: Path) -> None:
    recording = Recording.open(made(tmp_path))
    path = tmp_path / "train.py"
    path.write_text("x = 1\ny = 1\n")
    originals = Originals.of([path])
    path.write_text("x = 1\ny = 1\nmine = 1\n")
    diff = keeping.diff([Variant("a", {path: b"x = 2\ny = 1\n"})], originals, recording).diff
    assert b"mine" not in diff
    assert b"-x = 1\n+x = 2\n" in diff
