"""A reader who leaves before the end changes neither the files nor the exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"


@pytest.mark.parametrize("which", ["stdout", "stderr"])
def test_a_reader_who_leaves_changes_nothing(which: str, tmp_path: Path) -> None:
    """The read end of the pipe is closed before the command writes."""
    words = ["report", str(SAMPLE), "--out", str(tmp_path), "--fail-on", "note"]
    words += ["--write-baseline", str(tmp_path / "b.json")] if which == "stderr" else []
    with subprocess.Popen(
        [sys.executable, "-m", "tfdoctor", *words],
        stdout=subprocess.PIPE if which == "stdout" else subprocess.DEVNULL,
        stderr=subprocess.PIPE if which == "stderr" else subprocess.DEVNULL,
    ) as command:
        pipe = command.stdout or command.stderr
        assert pipe is not None
        pipe.close()
        code = command.wait(timeout=120)
    assert code == (0 if which == "stderr" else 3)  # --write-baseline accepts what is there
    assert (tmp_path / "report.html").stat().st_size > 0
    assert (tmp_path / "b.json").exists() == (which == "stderr")
