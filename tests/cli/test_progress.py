"""The line that says what is read: on terminals alone, late, and gone before anything else is printed."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"

WAITING = """
import sys
from tfdoctor.terms import progress_line as progress
progress.LATE_S = {late}
with progress.late_line("reading it …", sys.stderr):
    sys.stdin.readline() if {wait} else None
print("done", file=sys.stderr)
"""

AT_ONCE = """
from tfdoctor import cli
from tfdoctor.terms import progress_line as progress
progress.LATE_S = 0.0
cli.main()
"""

SHOWN = "\r\x1b[Ktfdoctor: reading it …"
REMOVED = "\r\x1b[K"


def on_terminal(*command: str, answer_to: str = "") -> str:
    """Return what a program writes to stderr on a terminal; when it has written a text, it gets a line."""
    ours, theirs = pty.openpty()
    shown = b""
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # how a terminal that was closed ends on Linux
            while piece := os.read(ours, 65536):
                shown += piece
                if answer_to and answer_to.encode() in shown and not process.stdin.closed:
                    process.stdin.close()
        os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_a_line_that_was_shown_is_removed_before_anything_else() -> None:
    text = on_terminal("-c", WAITING.format(late=0.0, wait=True), answer_to="reading it …")
    assert text == f"{SHOWN}{REMOVED}done\r\n"


def test_what_takes_no_time_has_no_line() -> None:
    assert on_terminal("-c", WAITING.format(late=600.0, wait=False)) == "done\r\n"


def test_without_a_terminal_there_is_no_line() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WAITING.format(late=0.0, wait=True).replace("readline()", "read()")],
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == "done\n"


@pytest.mark.parametrize("words", [["report", str(SAMPLE)], ["diff", str(SAMPLE), "{copy}", "--anyway"]])
def test_commands_say_what_they_read(words: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.symlink_to(SAMPLE.with_name("cpu-input-bound-fixed"))
    words = [word.format(copy=copy) for word in words]
    text = on_terminal("-c", AT_ONCE, *words, "--format", "json", "--out", str(tmp_path))
    what = "the trace, 0 MB …" if words[0] == "report" else str(SAMPLE)[:40]
    assert f"\r\x1b[Ktfdoctor: reading {what}" in text
    assert text.endswith(REMOVED)
