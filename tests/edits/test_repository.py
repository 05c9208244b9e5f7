"""Where the files of findings lie in their repository."""

from pathlib import Path

import pytest

from tests.report.diagnoses import full
from tfdoctor.edits import repository_paths
from tfdoctor.recording import Recording

SAMPLE = Recording.open(Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound")


def test_a_path_is_that_from_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the recorded folder are elsewhere: the current folder is another clone. One file is missing."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "train.py").write_text("")
    monkeypatch.chdir(tmp_path / "models")
    assert repository_paths(SAMPLE, full().results) == {"train.py": "models/train.py"}
