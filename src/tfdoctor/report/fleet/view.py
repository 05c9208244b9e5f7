"""A fleet as text, tables and the data of the page's own table, for every rendering."""

import json
from typing import Any, Self

from tfdoctor.diagnosis.fleet_report import FleetJob, FleetReport, PricedRun
from tfdoctor.report.fleet import words
from tfdoctor.report.tables import Grid
from tfdoctor.terms.humanize import dollars, milliseconds, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.text import name

SHOWN = 100  # Rows that the page has without scripts, and that it shows at once with them
# Of the data of the runs: a page of at most 3 MB opens at once, and its other parts take less than 0.4 MB.
PAGE_BYTES = 2_600_000
RULES = 3  # Findings that a row names; all are searched, and the report of the run has them
POINTS = 60  # Points of the line of a job, about as many as can be told apart
JOBS = 300  # Jobs of several runs, those with the most first; the table of runs has the others

COLUMNS = (
    *("run", "could be saved", "of the whole run", "of the step", "step"),
    *("findings", "device", "recorded"),
)


class FleetLine(Record, kw_only=True):
    """A run as a row of the page, in the order of COLUMNS after its name, its place and the link to its page."""

    job: str
    place: str
    link: str  # "" without a page
    saved: str
    of_run: str
    share: str
    step: str
    findings: str
    device: str
    recorded: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells after the first."""
        of = (self.saved, self.of_run, self.share, self.step)
        return (*of, self.findings, self.device, self.recorded)


class JobLine(Record):
    """A job as a row, and its step times as points of a line: shares of the width and the height."""

    cells: tuple[str, ...]
    points: tuple[tuple[float, float], ...]
    words: str


class FleetView(Record, kw_only=True):
    """What a rendering of a fleet shows, in order."""

    version: str
    headline: str
    notes: tuple[str, ...]
    faults: Grid
    lines: tuple[FleetLine, ...]  # the first of them
    jobs: tuple[JobLine, ...]
    failed: Grid
    data: str  # JSON of all runs that the page bears: see `_data`
    runs: int
    omitted: int  # runs that are in the files only
    priced: bool
    by_hours: bool

    @classmethod
    def of(cls, report: FleetReport) -> Self:
        """Return the view of a report."""
        data, kept = _data(report)
        failed = [(name(run.place), run.failure, name(run.error, 400)) for run in report.failed]
        return cls(
            version=report.version,
            headline=words.headline(report),
            notes=words.notes(report),
            faults=_faults(report),
            lines=tuple(_line(one, by_hours=report.by_hours) for one in report.runs[:SHOWN]),
            jobs=tuple(_job(job) for job in report.jobs[:JOBS] if len(job.points) > 1),
            failed=Grid(("recording", "kind", "error"), ("text",) * 3, tuple(failed)),
            data=data,
            runs=len(report.runs),
            omitted=len(report.runs) - kept,
            priced=report.priced,
            by_hours=report.by_hours,
        )


def _faults(report: FleetReport) -> Grid:
    """Return the faults; dollars are in the unit that they are ranked by."""
    rows: list[tuple[str, ...]] = []
    for fault in report.faults:
        waste, devices = fault.waste, "unknown"
        if waste.runs:
            unknown = f" + {fault.unknown:,} unknown" if fault.unknown else ""
            devices = f"{words.saved_devices(waste)}{unknown}"
        usd = waste.usd if report.by_hours else waste.usd_per_hour
        money = ["" if usd is None else dollars(usd)] if report.priced else []
        runs, hours = f"{waste.runs + fault.unknown:,}", words.saved_hours(waste)
        named = (name(fault.title), fault.rule)
        rows.append((*named, runs, hours, devices, *money, name(fault.worst)))
    dollar = "US dollars" if report.by_hours else "US dollars per hour"
    money = [dollar] if report.priced else []
    columns = ("fault", "rule", "runs", "device-hours", "devices", *money, "worst run")
    kinds = ("text", "text", *("number" for _ in columns[2:-1]), "text")
    return Grid(columns, kinds, tuple(rows))


def _line(one: PricedRun, *, by_hours: bool) -> FleetLine:
    run, rules = one.run, [finding.rule for finding in one.run.findings]
    others = f" and {len(rules) - RULES} more" if len(rules) > RULES else ""
    return FleetLine(
        job=name(one.job),
        place=name(run.place),
        link=run.report,
        saved=words.saved_by(one, by_hours=by_hours),
        of_run=words.saved_of_run(run),
        share=words.saved_share(run),
        step=milliseconds(run.step_ms),
        findings=f"{', '.join(rules[:RULES])}{others}",
        device=name(words.devices(run)),
        recorded=run.recorded.removesuffix("Z").replace("T", " "),
    )


def _job(job: FleetJob) -> JobLine:
    times = [point.step_ms for point in job.points]
    span, changed, last = milliseconds(times[0]), "", job.points[-1]
    if job.change is not None:
        span = f"{span} → {milliseconds(times[-1])}"
        changed = f"{share(abs(job.change))} {'longer' if job.change >= 0 else 'shorter'}"
    dates = [point.recorded[:10] for point in job.points]
    recorded = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    cells = (
        name(job.name),
        name(job.device_name),
        f"{len(times):,}",
        span,
        changed,
        words.part(last.share, at_most=last.at_most),
        recorded if all(dates) else "dates unknown: by place",
    )
    # A line from the first run to the last, from 0 ms at the bottom.
    every = max(1, len(times) // POINTS)
    kept = [*times[::every], *([times[-1]] if (len(times) - 1) % every else [])]
    most, end = max(kept), max(1, len(kept) - 1)
    points = tuple((round(at / end, 4), round(1 - time / most, 4)) for at, time in enumerate(kept))
    return JobLine(cells, points, f"Step times of {name(job.name)}: {span}.")


def _data(report: FleetReport) -> tuple[str, int]:
    """Return the runs as JSON for the page's script, and how many: as many as the page bears.

    Texts that many runs share are in lists, and rows have their places there.
    """
    jobs, devices, rules = _Texts(), _Texts(), _Texts()
    rows: list[str] = []
    size = 0
    for one in report.runs:
        row = json.dumps(_cells(one, jobs, devices, rules, by_hours=report.by_hours), separators=(",", ":"))
        size += len(row) + 1
        if size + jobs.size + devices.size + rules.size > PAGE_BYTES:
            break
        rows.append(row)
    lists = {"jobs": jobs.texts, "devices": devices.texts, "rules": rules.texts}
    head = json.dumps(lists, separators=(",", ":"))
    return f'{head[:-1]},"rows":[{",".join(rows)}]}}', len(rows)


class _Texts:
    """Texts, each once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.size = 0

    def place(self, text: str) -> int:
        """Return the place of a text in the list."""
        if text not in self._places:
            self._places[text] = len(self._places)
            self.size += len(json.dumps(text)) + 1
        return self._places[text]

    @property
    def texts(self) -> list[str]:
        """The texts in their order."""
        return list(self._places)


def _cells(one: PricedRun, jobs: _Texts, devices: _Texts, rules: _Texts, *, by_hours: bool) -> list[Any]:
    """Return a row for the script: texts as they are shown, and numbers to sort by."""
    run, line = one.run, _line(one, by_hours=by_hours)
    return [
        line.place,
        line.link,
        jobs.place(line.job),
        line.recorded,
        name(run.user),
        devices.place(line.device),
        line.saved,
        line.of_run,
        line.share,
        line.step,
        [rules.place(finding.rule) for finding in run.findings],
        _digits(run.wasted_device_hours if by_hours else None),
        _digits(run.wasted_devices),
        _digits(run.run_saving_share),
        _digits(run.saving_share),
        _digits(run.step_ms),
    ]


def _digits(value: float | None) -> float | None:
    """Return a number with one digit more than is shown: rows are sorted by it."""
    return None if value is None else float(f"{value:.4g}")
