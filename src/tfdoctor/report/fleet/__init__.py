"""Renderings of a fleet: a page that works offline, the first rows without scripts, and a terminal summary."""

import json
from collections import defaultdict
from pathlib import Path

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.files import write_texts
from tfdoctor.report.fleet import words
from tfdoctor.report.template import fill
from tfdoctor.terms.text import name

PAGE = "fleet.html"
SHOWN = 100  # Rows that the page has without scripts, and that it shows at once with them
# Of the data of the runs: a page of at most 3 MB opens at once, and its other parts take less than 0.4 MB.
PAGE_BYTES = 2_600_000
POINTS = 60  # Points of the line of a job, about as many as can be told apart
JOBS = 300  # Jobs of several runs, those with the most first; the table of runs has the others


def write(report: FleetReport, folder: Path) -> Path:
    """Write the page and return its path.

    Raises:
        OutputError: the folder cannot be written to, or something else has the name of the page.
    """
    path = folder / PAGE
    write_texts(folder, {path: render(report)})
    return path


def render(report: FleetReport) -> str:
    """Return the whole page."""
    data, kept = _data(report)
    jobs = [job for job in report.jobs[:JOBS] if len(job.runs) > 1]
    return fill(
        "fleet.html.jinja",
        report=report,
        words=words,
        lines=report.runs[:SHOWN],
        jobs=[(job, _points(job.steps_ms)) for job in jobs],
        data=data,
        omitted=len(report.runs) - kept,
        name=name,
    )


def _points(times: tuple[float, ...]) -> list[tuple[float, float]]:
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
