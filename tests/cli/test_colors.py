"""Colors and width of a report, as the environment and the terminal ask for them."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "sample_traces" / "synthetic-tpu-v5e-padded"
ASKED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


def environment(asked: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ASKED}
    return {**kept, "TERM": "xterm-256color", **asked}


def report(folder: Path, asked: Mapping[str, str], *, terminal: bool) -> str:
    """Return what `tfdoctor report` prints, on a terminal or into a file."""
    command = [sys.executable, "-m", "tfdoctor", "report", str(TRACE), "--format", "json"]
    ours, theirs = pty.openpty()
    output = folder / "output"
    with output.open("wb") as file:
        where = theirs if terminal else file.fileno()
        process = subprocess.Popen(command, stdout=where, cwd=folder, env=environment(asked))
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal that was closed ends on Linux
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.wait() == 0
    return (shown if terminal else output.read_bytes()).decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("asked", "terminal", "colored"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colors_are_as_asked(asked: dict[str, str], *, terminal: bool, colored: bool, tmp_path: Path) -> None:
    shown = report(tmp_path, asked, terminal=terminal)
    assert "What to change" in ESCAPE.sub("", shown)
    assert bool(ESCAPE.search(shown)) == colored
    assert ESCAPE.sub("", shown).count("\x1b") == 0


def test_the_summary_is_as_wide_as_asked(tmp_path: Path) -> None:
    shown = report(tmp_path, {"COLUMNS": "60"}, terminal=False)
    summary = shown.split("\nwrote ")[0]
    assert 50 < max(map(len, summary.splitlines())) <= 60
