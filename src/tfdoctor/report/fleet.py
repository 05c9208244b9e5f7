"""Renderings of a fleet: a page that works offline, the first rows without scripts, and a terminal summary."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report import fleet_words as words
from tfdoctor.report.files import write_texts
from tfdoctor.report.template import fill
from tfdoctor.report.terminal import capture, more
from tfdoctor.terms.text import name, shorten

PAGE = "fleet.html"
SHOWN = 100  # Rows that the page has without scripts, and that it shows at once with them
# Of the data of the runs: a page of at most 3 MB opens at once, and its other parts take less than 0.4 MB.
PAGE_BYTES = 2_600_000
POINTS = 60  # Points of the line of a job, about as many as can be told apart
ROWS, FAILED = 8, 3  # Rows of a table on a terminal, and failures; the page has the rest
JOBS = 300  # Jobs of several runs, those with the most first; the table of runs has the others


def write(report: FleetReport, folder: Path) -> Path:
    """Write the page and return its path.

    Raises:
        OutputError: the folder cannot be written to, or something else has the name of the page.
    """
    (path,) = write_texts(folder, {folder / PAGE: render(report)})
    return path


def render(report: FleetReport) -> str:
    """Return the whole page."""
    data, kept = _data(report)
    jobs = [job for job in report.jobs[:JOBS] if len(job) > 1]
    return fill(
        "fleet.html.jinja",
        report=report,
        words=words,
        lines=report.runs[:SHOWN],
        jobs=[(job, _points([run.step_ms or 0.0 for run in job])) for job in jobs],
        data=data,
        omitted=len(report.runs) - kept,
        name=name,
    )


def _points(times: list[float]) -> list[tuple[float, float]]:
    """Return a line from the first run to the last, from 0 ms at the bottom: shares of the width and the height."""
    every = max(1, len(times) // POINTS)
    kept = [*times[::every], *([times[-1]] if (len(times) - 1) % every else [])]
    most, end = max(kept), max(1, len(kept) - 1)
    return [(round(at / end, 4), round(1 - time / most, 4)) for at, time in enumerate(kept)]


def _data(report: FleetReport) -> tuple[str, int]:
    """Return the runs as JSON for the page's script, and how many: as many as the page bears.

    Texts that many runs share are in lists, and rows have their places there. A row has texts as they are shown,
    and numbers to sort by.
    """
    places: dict[str, dict[str, int]] = defaultdict(dict)
    rows: list[str] = []
    size = 0

    def place(kind: str, text: str) -> int:
        nonlocal size
        if text not in places[kind]:
            size += len(json.dumps(text)) + 1
        return places[kind].setdefault(text, len(places[kind]))

    for run in report.runs:
        *shown, _, device, recorded = words.cells(run, report)
        row = [name(run.place), run.report, place("jobs", name(run.job)), recorded, name(run.user)]
        row += [place("devices", device), *shown, [place("rules", finding.rule) for finding in run.findings]]
        hours = run.wasted_device_hours if report.by_hours else None
        numbers = (hours, run.wasted_devices, run.run_saving_share, run.saving_share, run.step_ms)
        # One digit more than is shown: rows are sorted by it.
        row += [None if number is None else float(f"{number:.4g}") for number in numbers]
        text = json.dumps(row, separators=(",", ":"))
        size += len(text) + 1
        if size > PAGE_BYTES:
            break
        rows.append(text)
    lists = {kind: list(places[kind]) for kind in ("jobs", "devices", "rules")}
    head = json.dumps(lists, separators=(",", ":"))
    return f'{head[:-1]},"rows":[{",".join(rows)}]}}', len(rows)


def terminal(report: FleetReport, *, width: int | None = None, color: bool | None = None) -> str:
    """Return what a terminal shows: what could be saved, by which faults and in which runs."""
    return capture(lambda columns: _sections(report, columns), width=width, color=color)


def _sections(report: FleetReport, width: int) -> Iterator[RenderableType]:
    yield Text(f"{words.headline(report)}.", style="bold")
    yield Text("\n".join(words.notes(report)))
    if report.faults:
        table = _table("Faults over all runs", ("rule",), ("runs", "device-hours", "devices"))
        for row in words.faults(report).first(ROWS).rows:
            table.add_row(*row[1:5])
        yield table
    if report.runs:
        table = _table("Runs that waste most", (), ("could be saved", "share"), ("run",))
        room = max(24, width - 46)
        for run in report.runs[:ROWS]:
            saved, of_run, share, step, findings, *_ = words.cells(run, report)
            place = name(run.place)
            place = place if len(place) <= room else f"…{place[1 - room :]}"
            told = f"{place}\n{shorten(name(run.job), room - 12)} · {step}\n{findings or 'no finding'}"
            table.add_row(saved, of_run or f"{share} of the step", told)
        yield Group(table, *more(len(report.runs) - ROWS, "on the page"))
    if report.failed:
        shown = words.failures(report).first(FAILED)
        lines = [Text(error if place in error else f"{place}: {error}") for place, _, error in shown.rows]
        yield Group(Text("Not diagnosed", style="bold"), *lines, *more(shown.omitted, "on the page"))


def _table(title: str, first: Sequence[str], numbers: Sequence[str], last: Sequence[str] = ()) -> Table:
    table = Table(
        title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for column in (*first, *numbers, *last):
        table.add_column(Text(column, style="dim"), justify="right" if column in numbers else "left")
    return table
