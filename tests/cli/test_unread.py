"""A reader who leaves before the end changes neither the files nor the exit code."""

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import TextIO, cast

import pytest

from tfdoctor.cli.leaving_reader import Unread
from tfdoctor.cli.messages import draw

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


def test_what_is_printed_commands_nothing_but_what_is_ours() -> None:
    printed = StringIO()
    stream = cast("TextIO", Unread(cast("TextIO", printed)))
    print("tfdoctor: a\x1b[31m\n ::error::x\u202e\ud800", file=stream)
    draw("\x1b[1mbold\x1b[0m\n::notice title=tfdoctor::x", stream)
    assert printed.getvalue() == (
        "tfdoctor: a\\x1b[31m\n \\::error::x\\u202e\\ud800\n"
        "\x1b[1mbold\x1b[0m\n::notice title=tfdoctor::x\n"
    )
