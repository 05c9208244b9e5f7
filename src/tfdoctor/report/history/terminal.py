"""The history on a terminal."""

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report.history.view import RUNS, HistoryView, SeriesView
from tfdoctor.report.tables import Grid
from tfdoctor.report.terminal import capture, grid_table, more

ROWS = 10  # Rows of a table; the files have the rest
SERIES = 5  # Series that are shown; the files have all


def render(history: History, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the history; width and color default to those of the terminal."""
    view = HistoryView.of(history)
    return capture(lambda columns: _sections(view, columns), width=width, color=color)


def _sections(view: HistoryView, width: int) -> Iterator[RenderableType]:
    yield Text(view.headline, style="bold")
    for series in view.series[:SERIES]:
        yield from _series(series, width)
    yield Text("\n".join(view.notes))
    yield from more(len(view.series) - SERIES, "series in the files")


def _series(series: SeriesView, width: int) -> Iterator[RenderableType]:
    yield Group(Text(series.title, style="bold"), Text(series.about, style="dim"))
    yield Text("\n".join(series.sentences))
    for title, grid in series.tables:
        yield grid_table(title, _narrow(grid) if title == RUNS else grid, ROWS, width)


def _narrow(grid: Grid) -> Grid:
    """Return the table of runs without their places, which are too long."""
    rows = tuple(row[:-1] for row in grid.rows)
    return replace(grid, columns=grid.columns[:-1], kinds=grid.kinds[:-1], rows=rows)
