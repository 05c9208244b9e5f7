"""The summary on a terminal: readable in 80 columns, and no name drives the terminal."""

import re

import pytest
from rich.cells import cell_len

from tests.report import diagnoses
from tfdoctor.report import terminal


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    for kind, diagnosis in diagnoses.ALL.items():
        lines = terminal.render(diagnosis(), width=width, color=False).splitlines()
        assert max(map(cell_len, lines)) <= min(width, terminal.WIDEST), kind


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_without_colour_there_is_no_escape(kind: str) -> None:
    shown = terminal.render(diagnoses.ALL[kind](), width=80, color=False)
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_with_colour_the_only_escapes_are_colours() -> None:
    shown = terminal.render(diagnoses.hostile(), width=80, color=True)
    assert "\x1b[" in shown
    assert "\x1b" not in re.sub(r"\x1b\[[\d;]*m", "", shown)


def test_colour_changes_no_word() -> None:
    coloured = terminal.render(diagnoses.full(), width=80, color=True)
    plain = terminal.render(diagnoses.full(), width=80, color=False)
    assert [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()] == plain.splitlines()


def test_markup_in_names_stays_text() -> None:
    assert "[bold red]@all" in terminal.render(diagnoses.hostile(), width=100, color=False)


def test_a_pipe_gets_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert "\x1b" not in terminal.render(diagnoses.full(), width=80)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in terminal.render(diagnoses.full(), width=80)


def test_a_part_that_exists_is_visible() -> None:
    between = next(
        line for line in terminal.render(diagnoses.full(), width=80, color=False).splitlines() if "between" in line
    )
    assert re.search(r"[▏▎▍▌▋▊▉█]$", between)


def test_many_findings_are_counted() -> None:
    assert "… 39 more in the report" in terminal.render(diagnoses.huge(), width=80, color=False)


def test_the_name_of_a_change_is_whole_in_80_columns() -> None:
    shown = terminal.render(diagnoses.ALL["tried"](), width=80, color=False)
    assert "\nTF_ENABLE_ONEDNN_OPTS=0  " in shown
