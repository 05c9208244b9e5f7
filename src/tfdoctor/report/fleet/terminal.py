"""A fleet on a terminal: what could be saved, by which faults and in which runs."""

from collections.abc import Iterator

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.fleet import words
from tfdoctor.report.terminal import capture, more
from tfdoctor.terms.text import name, shorten

ROWS = 8  # Rows of a table; the page has the rest
FAILED = 3


def render(report: FleetReport, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the summary; width and color default to those of the terminal."""
    return capture(lambda columns: _sections(report, columns), width=width, color=color)


def _sections(report: FleetReport, width: int) -> Iterator[RenderableType]:
    yield Text(f"{words.headline(report)}.", style="bold")
    yield Text("\n".join(words.notes(report)))
    if report.faults:
        columns: dict[str, JustifyMethod] = {
            "rule": "left",
            "runs": "right",
            "device-hours": "right",
            "devices": "right",
        }
        table = _table("Faults over all runs", columns)
        for row in words.faults(report).first(ROWS).rows:
            table.add_row(*row[1:5])
        yield table
    if report.runs:
        yield Group(_runs(report, width), *more(len(report.runs) - ROWS, "on the page"))
    if report.failed:
        shown = words.failures(report).first(FAILED)
        lines = [Text(error if place in error else f"{place}: {error}") for place, _, error in shown.rows]
        yield Group(Text("Not diagnosed", style="bold"), *lines, *more(shown.omitted, "on the page"))


def _runs(report: FleetReport, width: int) -> Table:
    table = _table("Runs that waste most", {"could be saved": "right", "share": "right", "run": "left"})
    room = max(24, width - 46)
    for run in report.runs[:ROWS]:
        saved, of_run, share, step, findings, *_ = words.cells(run, report)
        place = name(run.place)
        place = place if len(place) <= room else f"…{place[1 - room :]}"
        told = f"{place}\n{shorten(name(run.job), room - 12)} · {step}\n{findings or 'no finding'}"
        table.add_row(saved, of_run or f"{share} of the step", told)
    return table


def _table(title: str, columns: dict[str, JustifyMethod]) -> Table:
    table = Table(
        title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for column, side in columns.items():
        table.add_column(Text(column, style="dim"), justify=side)
    return table
