"""The files of its folder that a run wrote."""

import time
from pathlib import Path

import pytest

from tests.capture.running import environment, profiled
from tfdoctor.capture import written_files
from tfdoctor.capture.written_files import written_since
from tfdoctor.recording.manifest import WrittenFiles

SCRIPT = """
import os
from pathlib import Path

Path("checkpoints").mkdir()
Path("checkpoints/1.bin").write_bytes(b"1")
with open("log.txt", "a") as log:
    log.write("2")
Path("__pycache__").mkdir()
Path("__pycache__/x.pyc").write_bytes(b"3")
os.utime("checkpoints/1.bin", (0, 0))
"""


def test_a_recording_knows_what_its_folder_got(tmp_path: Path) -> None:
    """Traps: a file that is dated back, and the recording itself, which lies in the same folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "log.txt").write_text("1")
    (folder / "data.txt").write_text("1")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    time.sleep(0.02)  # the clock of a file system has steps of up to 10 ms
    run = profiled(script, folder / "runs" / "one", env=environment(), sample_every_ms=0)
    assert run.code == 0, run.stderr
    assert run.manifest.written == WrittenFiles(2, ("checkpoints/1.bin", "log.txt"))


def test_in_a_large_folder_it_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert written_since(tmp_path, 0, tmp_path / "out") == WrittenFiles(4, ("0", "1", "2", "3"))
    monkeypatch.setattr(written_files, "MOST_ENTRIES", 3)
    assert written_since(tmp_path, 0, tmp_path / "out") is None


def test_many_names_are_counted_and_a_few_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "NAMES", 2)
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert written_since(tmp_path, 0, tmp_path / "out") == WrittenFiles(4, ("0", "1"))


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    for made in (outside, folder):
        made.mkdir()
    (outside / "file").touch()
    (folder / "link").symlink_to(outside)
    assert written_since(folder, 0, folder / "out") == WrittenFiles(1, ("link",))
