"""Where the files of findings lie in their repository."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.made import finding
from tests.report.diagnoses import full
from tfdoctor.edits import line_hashes, repository_paths
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord

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
