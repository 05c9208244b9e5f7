"""Pages and lists on a terminal, however narrow it is."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.command import tfdoctor
from tfdoctor.cli.screen import rendered
from tfdoctor.report.rule_page import rule_page
from tfdoctor.rules import all_rules

ESCAPES = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\")
"""Colours, and the addresses of links."""


def on_terminal(folder: Path, columns: int, *command: str) -> str:
    """Return what a command shows on a terminal of this width."""
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": str(columns)}
    whole = [sys.executable, "-m", "tfdoctor", *command]
    with subprocess.Popen(whole, stdout=theirs, cwd=folder, env=env) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal that was closed ends on Linux
            while piece := os.read(ours, 65536):
                shown += piece
        os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_the_page_of_a_rule_is_set_and_no_markup(tmp_path: Path) -> None:
    text = on_terminal(tmp_path, 80, "explain", "input-bound")
    assert "What it checks" in text
    assert "## What it checks" not in text
    assert "\x1b[" in text


@pytest.mark.parametrize("width", [25, 40, 80])
def test_no_word_of_a_page_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for rule in all_rules():
        page = rule_page(rule)
        shown = ESCAPES.sub("", rendered(page))
        assert shown.count("…") == page.count("…"), rule.name
        assert max(map(cell_len, shown.splitlines())) <= width, rule.name


def test_the_list_of_rules_is_no_wider_than_the_terminal(tmp_path: Path) -> None:
    narrow = on_terminal(tmp_path, 40, "rules")
    assert max(map(len, narrow.splitlines())) <= 40
    assert narrow.split() == tfdoctor("rules").stdout.split()
