"""What commands show on a terminal, however narrow it is: pages, lists, colors, and the line of what is read."""

import pty

from rich.cells import cell_len

from tests.cli.kit import *
from tfdoctor.cli.screen import rendered
from tfdoctor.report.rule_page import rule_page
from tfdoctor.rules import all_rules

TPU = SAMPLES / "synthetic-tpu-v5e-padded"
ASKED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")
COLOR = re.compile(r"\x1b\[[\d;]*m")
LINK = re.compile(r"\x1b\]8;[^\x1b]*\x1b\\")


def shown(*command: object, stream: str = "stdout", answer_to: str = "", **asked: str) -> str:
    """Return what a Python writes to a stream that is a terminal; when it has written a text, its input ends."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ASKED}
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    text = b""
    env = {**kept, "TERM": "xterm-256color", **asked}
    words = [sys.executable, *map(str, command)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=env, **streams) as process:
        os.close(theirs)
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # how a terminal that was closed ends on Linux
            while piece := os.read(ours, 65536):
                text += piece
                if answer_to and answer_to.encode() in text and not process.stdin.closed:
                    process.stdin.close()
        os.close(ours)
    assert process.returncode == 0
    return text.decode().replace("\r\n", "\n")


def test_the_page_of_a_rule_is_set_and_no_markup() -> None:
    text = shown("-m", "tfdoctor", "explain", "input-bound", COLUMNS="80")
    assert ["What it checks" in text, "## What it checks" in text, "\x1b[" in text] == [True, False, True]


@each(25, 80)
def test_no_word_of_a_page_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for rule in all_rules():
        page = rule_page(rule)
        text = LINK.sub("", COLOR.sub("", rendered(page)))
        assert text.count("…") == page.count("…"), rule.name
        assert max(map(cell_len, text.splitlines())) <= width, rule.name


def test_the_list_of_rules_is_no_wider_than_the_terminal() -> None:
    narrow = shown("-m", "tfdoctor", "rules", COLUMNS="40")
    assert max(map(len, narrow.splitlines())) <= 40
    assert narrow.split() == tfdoctor("rules").stdout.split()


def reported(folder: Path, asked: Mapping[str, str], *, terminal: bool) -> str:
    """Return what `tfdoctor report` prints, on a terminal or elsewhere."""
    (folder / "report.json").write_text(report_of(TPU))
    words = ("report", str(folder / "report.json"), "--format", "md")
    if terminal:
        return shown("-m", "tfdoctor", *words, **asked)
    with pytest.MonkeyPatch.context() as patch:
        for name in ASKED:
            patch.delenv(name, raising=False)
        for name, value in asked.items():
            patch.setenv(name, value)
        return tfdoctor(*words).stdout


@cases(
    ({}, "on a terminal", "colored"),
    ({}, "", ""),
    ({"NO_COLOR": "1"}, "on a terminal", ""),
    ({"NO_COLOR": ""}, "on a terminal", "colored"),
    ({"FORCE_COLOR": "1"}, "", "colored"),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "on a terminal", ""),
)
def test_colors_are_as_asked(asked: dict[str, str], terminal: str, colored: str, tmp_path: Path) -> None:
    text = reported(tmp_path, asked, terminal=bool(terminal))
    plain = COLOR.sub("", text)
    assert ("What to change" in plain, plain.count("\x1b"), text != plain) == (True, 0, bool(colored))


def test_the_summary_is_as_wide_as_asked(tmp_path: Path) -> None:
    summary = reported(tmp_path, {"COLUMNS": "60"}, terminal=False).split("\nwrote ")[0]
    assert 50 < max(map(len, summary.splitlines())) <= 60


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

REMOVED = "\r\x1b[K"


def test_a_line_that_was_shown_is_removed_before_anything_else() -> None:
    code = WAITING.format(late=0.0, wait=True)
    text = shown("-c", code, stream="stderr", answer_to="reading it …")
    assert text == f"{REMOVED}tfdoctor: reading it …{REMOVED}done\n"


def test_what_takes_no_time_has_no_line() -> None:
    assert shown("-c", WAITING.format(late=600.0, wait=False), stream="stderr") == "done\n"


def test_without_a_terminal_there_is_no_line() -> None:
    command = [sys.executable, "-c", WAITING.format(late=0.0, wait=True)]
    assert subprocess.run(command, input="", capture_output=True, text=True, check=True).stderr == "done\n"


@each(["report", SLOW], ["diff", SLOW, FIXED, "--anyway"])
def test_commands_say_what_they_read(words: list[object], tmp_path: Path) -> None:
    text = shown("-c", AT_ONCE, *words, "--format", "json", "--out", tmp_path, stream="stderr")
    what = "the trace, 0 MB …" if words[0] == "report" else str(SLOW)[:40]
    assert f"{REMOVED}tfdoctor: reading {what}" in text
    assert text.endswith(REMOVED)
