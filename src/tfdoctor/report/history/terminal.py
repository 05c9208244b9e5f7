"""The history on a terminal."""

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report.history import words
from tfdoctor.report.terminal import capture, grid_table, more

ROWS = 10  # Rows of a table; the files have the rest
SERIES = 5  # Series that are shown; the files have all


def render(history: History, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the history; width and color default to those of the terminal."""
    return capture(lambda columns: _sections(history, columns), width=width, color=color)


def _sections(history: History, width: int) -> Iterator[RenderableType]:
    yield Text(words.headline(history), style="bold")
    for series in history.series[:SERIES]:
        yield Group(Text(words.title(series), style="bold"), Text(words.about(series), style="dim"))
        yield Text("\n".join(words.sentences(series)))
        for title, grid in words.tables(series).items():
            shown = grid
            if title == words.RUNS:  # without the places of the runs, which are too long
                rows = tuple(row[:-1] for row in grid.rows)
                shown = replace(grid, columns=grid.columns[:-1], kinds=grid.kinds[:-1], rows=rows)
            yield grid_table(title, shown, ROWS, width)
    yield Text("\n".join(words.notes(history)))
    yield from more(len(history.series) - SERIES, "series in the files")
