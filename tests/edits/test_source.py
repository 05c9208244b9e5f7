"""A file is edited only where it is unchanged since the recording; its path in the repository is found."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.made import finding
from tests.edits.recorded import recorded
from tests.report.diagnoses import full
from tfdoctor.edits import line_hashes, repository_paths
from tfdoctor.edits.source import SourceFile, Sources, existing, folders_of
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.source_code.splice import Declined
from tfdoctor.terms.verdict import Location

TEXT = b"import tensorflow as tf\n"


def test_an_unchanged_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    assert Sources(recorded(tmp_path, ["train.py"]))["train.py"].text == TEXT.decode()


def test_a_file_of_another_clone_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    recording = recorded(tmp_path, ["train.py"])
    clone = tmp_path / "clone"
    clone.mkdir()
    (tmp_path / "train.py").rename(clone / "train.py")
    monkeypatch.chdir(clone)
    assert Sources(recording)["train.py"].data == TEXT


def test_a_script_outside_the_folder_of_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text("x = 1\n", encoding="utf-8")
    recording = recorded(tmp_path / "job", ["train.py"])
    script = str(tmp_path / "job" / "train.py")
    elsewhere = Manifest(command=("python", script), cwd=str(tmp_path / "run"))
    sources = Sources(replace(recording, manifest=elsewhere))
    assert sources["train.py"].text == "x = 1\n"
    assert sources.trains() == Location("train.py", 0)


def test_of_two_files_that_are_shown_alike_none_is_edited(tmp_path: Path) -> None:
    for folder in ("job", "run"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text("x = 1\n", encoding="utf-8")
    recording = recorded(tmp_path, ["job/train.py", "run/train.py"])
    both = Manifest(command=("python", str(tmp_path / "job" / "train.py")), cwd=str(tmp_path / "run"))
    with pytest.raises(Declined, match=r"more than one train\.py"):
        Sources(replace(recording, manifest=both))["train.py"]


def test_a_file_that_changed_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    sources = Sources(recorded(tmp_path, ["train.py"]))
    (tmp_path / "train.py").write_bytes(TEXT + b"#")
    with pytest.raises(Declined, match=r"train\.py has changed since the recording"):
        sources["train.py"]


def test_a_removed_file_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    sources = Sources(recorded(tmp_path, ["train.py"]))
    (tmp_path / "train.py").unlink()
    with pytest.raises(Declined, match=r"train\.py was not found"):
        sources["train.py"]


def test_a_file_without_a_hash_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    with pytest.raises(Declined, match=r"no hash of train\.py"):
        Sources(recorded(tmp_path, []))["train.py"]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("é = 1\n".encode(), "utf-8"),
        (b"\xef\xbb\xbfx = 1\r\n", "utf-8-sig"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "iso-8859-1"),
        ("# coding: cp1252\nx = '€'\n".encode("cp1252"), "cp1252"),
    ],
)
def test_a_file_is_read_in_its_encoding_and_written_in_it(data: bytes, encoding: str) -> None:
    source = SourceFile.read("train.py", data)
    assert source.encoding == encoding
    assert source.encoded(source.text) == data


@pytest.mark.parametrize("folder", ["a\0b", "x" * 5000, "\ud800", "/dev/null/x"])
def test_a_folder_that_cannot_be_is_not_found(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is still found in another one."""
    (tmp_path / "train.py").write_bytes(TEXT)
    recording = replace(recorded(tmp_path, ["train.py"]), manifest=Manifest(cwd=folder))
    monkeypatch.chdir(tmp_path)
    name = next(iter(recording.program.sources)) if recording.program else ""
    assert existing(Path(folder)) is None
    assert folders_of([folder]) == [tmp_path.resolve()]
    assert Sources(recording)[name].data == TEXT


def test_a_pipe_is_no_file_to_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(TEXT)
    recording = recorded(tmp_path, ["train.py"])
    (tmp_path / "train.py").unlink()
    os.mkfifo(tmp_path / "train.py")
    with pytest.raises(Declined, match="no file of a program"):
        Sources(recording)["train.py"]


SAMPLE = Recording.open(Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound")


def test_a_path_is_that_from_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the recorded folder are elsewhere: the current folder is another clone. One file is missing."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "train.py").write_text("")
    monkeypatch.chdir(tmp_path / "models")
    assert repository_paths(SAMPLE, full().results) == {"train.py": "models/train.py"}


def test_the_lines_that_findings_name_have_the_hashes_that_were_recorded() -> None:
    program = ProgramRecord(lines={"train.py": "aaaaaaaabbbbbbbbcccccccc"})
    found = finding("slow", "train.py", 3.0, line=2), finding("other", "helpers.py", 3.0, line=2)
    recording = replace(SAMPLE, program=program)

    assert line_hashes(recording, found) == {"train.py:2": "bbbbbbbb"}
    assert [program.line("train.py", number) for number in (0, 3, 4)] == ["", "cccccccc", ""]
