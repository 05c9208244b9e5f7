"""A fleet on a terminal: what could be saved, by which faults and in which runs."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.fleet.view import FleetLine, FleetView
from tfdoctor.report.tables import Grid
from tfdoctor.report.terminal import capture
from tfdoctor.terms.text import shorten

ROWS = 8
"""Rows of a table; the page has the rest."""

FAILED = 3


def render(report: FleetReport, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    view = FleetView.of(report)
    return capture(lambda columns: _page(view, columns), width=width, color=color)


def _page(view: FleetView, width: int) -> RenderableType:
    sections: list[RenderableType] = [Text(f"{view.headline}.", style="bold")]
    sections += [Text("\n".join(view.notes))] if view.notes else []
    sections += [_faults(view.faults)] if view.faults.rows else []
    sections += [_runs(view, width)] if view.lines else []
    sections += [_failed(view.failed)] if view.failed.rows else []
    return Group(*(Padding(section, (0, 0, 1, 0)) for section in sections))


def _faults(grid: Grid) -> RenderableType:
    table = _table("Faults over all runs", ("rule", "runs", "device-hours", "devices"))
    for _, rule, runs, hours, devices, *_ in grid.first(ROWS).rows:
        table.add_row(rule, runs, hours, devices)
    return table


def _runs(view: FleetView, width: int) -> RenderableType:
    table = _table("Runs that waste most", ("could be saved", "share", "run"), left=1)
    for line in view.lines[:ROWS]:
        share = line.of_run or f"{line.share} of the step"
        table.add_row(line.saved, share, _run(line, max(24, width - 46)))
    more = view.runs - ROWS
    rest = [Text(f"… {more:,} more on the page", style="dim")] if more > 0 else []
    return Group(table, *rest)


def _run(line: FleetLine, room: int) -> str:
    named = line.findings or "no finding"
    place = line.place if len(line.place) <= room else f"…{line.place[1 - room :]}"
    return f"{place}\n{shorten(line.job, room - 12)} · {line.step}\n{named}"


def _failed(grid: Grid) -> RenderableType:
    shown = grid.first(FAILED)
    lines = [
        Text(error if place in error else f"{place}: {error}") for place, _, error in shown.rows
    ]
    rest = [Text(f"… {shown.omitted:,} more on the page", style="dim")] if shown.omitted else []
    return Group(Text("Not diagnosed", style="bold"), *lines, *rest)


def _table(title: str, columns: tuple[str, ...], left: int = 0) -> Table:
    """Return a table whose numbers are right-aligned; ``left`` of its last columns are text."""
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for at, column in enumerate(columns):
        is_text = at >= len(columns) - left or (not left and at == 0)
        table.add_column(Text(column, style="dim"), justify="left" if is_text else "right")
    return table
