"""A fleet on a terminal: what could be saved, by which faults and in which runs."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.fleet.view import FleetView
from tfdoctor.report.terminal import capture, more
from tfdoctor.terms.text import shorten

ROWS = 8  # Rows of a table; the page has the rest

FAILED = 3


def render(report: FleetReport, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    view = FleetView.of(report)
    return capture(lambda columns: _sections(view, columns), width=width, color=color)


def _sections(view: FleetView, width: int) -> Iterator[RenderableType]:
    yield Text(f"{view.headline}.", style="bold")
    yield Text("\n".join(view.notes))
    if view.faults.rows:
        faults = _table("Faults over all runs", ("rule", "runs", "device-hours", "devices"))
        for _, rule, runs, hours, devices, *_ in view.faults.first(ROWS).rows:
            faults.add_row(rule, runs, hours, devices)
        yield faults
    if view.lines:
        yield _runs(view, width)
    if view.failed.rows:
        shown = view.failed.first(FAILED)
        lines = [Text(error if place in error else f"{place}: {error}") for place, _, error in shown.rows]
        yield Group(Text("Not diagnosed", style="bold"), *lines, *more(shown.omitted, "on the page"))


def _runs(view: FleetView, width: int) -> RenderableType:
    table = _table("Runs that waste most", ("could be saved", "share", "run"), left=1)
    room = max(24, width - 46)
    for line in view.lines[:ROWS]:
        share = line.of_run or f"{line.share} of the step"
        place = line.place if len(line.place) <= room else f"…{line.place[1 - room :]}"
        run = f"{place}\n{shorten(line.job, room - 12)} · {line.step}\n{line.findings or 'no finding'}"
        table.add_row(line.saved, share, run)
    return Group(table, *more(view.runs - ROWS, "on the page"))


def _table(title: str, columns: tuple[str, ...], left: int = 0) -> Table:
    """Return a table whose numbers are right-aligned; ``left`` of its last columns are text."""
    table = Table(
        title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for at, column in enumerate(columns):
        is_text = at >= len(columns) - left or (not left and at == 0)
        table.add_column(Text(column, style="dim"), justify="left" if is_text else "right")
    return table
