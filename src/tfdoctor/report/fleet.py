"""A fleet in sentences and tables, and its renderings: a page that works offline, and a terminal summary."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tfdoctor.diagnosis.fleet_report import FleetReport, FleetRun
from tfdoctor.report.tables import Grid, texts
from tfdoctor.report.template import fill
from tfdoctor.report.terminal import grid_table, more
from tfdoctor.report.terminal.table import fitted
from tfdoctor.terms.humanize import amount, counted, dollars, duration, milliseconds, share
from tfdoctor.terms.text import capitalized, name, shorten
from tfdoctor.terms.verdict import Bound

PAGE = "fleet.html"
SHOWN = 100  # Rows that the page has without scripts, and that it shows at once with them
# Of the data of the runs: a page of at most 3 MB opens at once, and its other parts take less than 0.4 MB.
PAGE_BYTES = 2_600_000
POINTS = 60  # Points of the line of a job, about as many as can be told apart
ROWS, FAILED = 8, 3  # Rows of a table on a terminal, and failures; the page has the rest
JOBS = 300  # Jobs of several runs, those with the most first; the table of runs has the others
# What rules save of a run for which they found no change: other changes may help, so it is not called healthy.
NOTHING = "none known"
RULES = 3  # Findings that a row names; all are searched, and the report of the run has them
MS_PER_HOUR = 3_600_000.0

# Of the cells of a run.
COLUMNS = ("could be saved", "of the whole run", "of the step", "step", "findings", "device", "recorded")


def headline(report: FleetReport) -> str:
    """Return what could be saved of all runs, as a sentence without an end."""
    waste = report.waste
    if not report.runs:
        return "No recording could be diagnosed" if report.failed else "No recording was examined"
    if not waste.runs:
        every = "all " if len(report.runs) > 1 else ""
        return f"The saving is unknown for {every}{counted(len(report.runs), 'run')}"
    if not waste.devices:
        return f"No known change saves time in {counted(waste.runs, 'run')}"
    by_hours = report.by_hours and report.device_hours
    most = "up to " if (waste.hours_at_most if by_hours else waste.at_most) else ""
    if by_hours:
        part = share(waste.device_hours / report.device_hours)
        hours = f"{amount(waste.device_hours)} of {amount(report.device_hours)} device-hours"
        return capitalized(f"{most}{hours} ({part}) could be saved in {counted(report.timed, 'run')}")
    devices = f"{amount(waste.devices)} of {counted(report.devices, 'device')}"
    runs = f"{counted(waste.runs, 'run trains', 'runs train')}"
    return capitalized(f"{most}{devices} could be saved while {runs}")


def notes(report: FleetReport) -> list[str]:
    """Return what a reader needs to know of the figures."""
    told = [_money(report), _lengths(report)]
    if without := sum(run.lost_share is None for run in report.runs):
        told.append(f"For {counted(without, 'run')} the saving is unknown: the report of the run says why.")
    if failed := len(report.failed):
        told.append(f"{capitalized(counted(failed, 'recording'))} could not be diagnosed.")
    if report.left:
        recordings = capitalized(counted(report.left, "recording was", "recordings were"))
        because = "because the command was interrupted: the same command continues."
        told.append(f"{recordings} not examined, {because}")
    return [sentence for sentence in told if sentence]


def _money(report: FleetReport) -> str:
    waste = report.waste
    if not report.priced:
        return ""
    if waste.usd_per_hour is None:
        return "No price was given for any of these devices."
    most, hours = ("at most " if ceiling else "" for ceiling in (waste.at_most, waste.hours_at_most))
    known = f"{hours}{dollars(waste.usd)} over the runs whose length is known, and " if waste.usd else ""
    missing = f" without {counted(report.unpriced, 'run')} whose device has no price" if report.unpriced else ""
    rate = f"{most}{dollars(waste.usd_per_hour)} per hour while all of them train"
    return f"At the given prices that is {known}{rate}{missing}."


def _lengths(report: FleetReport) -> str:
    unknown = sum(run.lost_hours is None for run in report.runs)
    if not unknown or not report.waste.runs:
        return ""
    do, are = ("does", "it is") if unknown == 1 else ("do", "they are")
    ranked = "so runs are ranked by the devices that could be saved while they train"
    return (
        f"{capitalized(counted(unknown, 'recording'))} {do} not say how long the run lasted, as traces of other "
        f"profilers do not; {f'{are} ranked after the others' if report.by_hours else ranked}."
    )


def faults(report: FleetReport) -> Grid:
    """Return the faults; dollars are in the unit that they are ranked by."""
    rows: list[tuple[str, ...]] = []
    for fault in report.faults:
        waste = fault.waste
        unknown = f" + {fault.unknown:,} unknown" if fault.unknown else ""
        devices = f"{_limited(waste.devices, waste.at_most)}{unknown}" if waste.runs else "unknown"
        hours = _limited(waste.device_hours, waste.hours_at_most) if waste.device_hours else ""
        usd = waste.usd if report.by_hours else waste.usd_per_hour
        money = ["" if usd is None else dollars(usd)] if report.priced else []
        runs = f"{waste.runs + fault.unknown:,}"
        rows.append((name(fault.title), fault.rule, runs, hours, devices, *money, name(fault.worst)))
    money = [f"US dollars{'' if report.by_hours else ' per hour'}"] if report.priced else []
    numbers = dict.fromkeys(("runs", "device-hours", "devices", *money), "number")
    return texts({"fault": "text", "rule": "text", **numbers, "worst run": "text"}, rows)


def failures(report: FleetReport) -> Grid:
    """Return the recordings that could not be diagnosed."""
    rows = [(name(run.place), run.failure, name(run.error, 400)) for run in report.failed]
    return texts(dict.fromkeys(("recording", "kind", "error"), "text"), rows)


def cells(run: FleetRun, report: FleetReport) -> tuple[str, ...]:
    """Return a run as a row, in the order of COLUMNS."""
    if run.lost_share == 0:
        saved = NOTHING
    elif report.by_hours and run.wasted_device_hours is not None:
        saved = f"{_limited(run.wasted_device_hours, run.at_most)} device-h"
    elif run.wasted_devices is not None:  # runs are ranked by these
        noun = "device" if amount(run.wasted_devices) == "1" else "devices"
        saved = f"{_limited(run.wasted_devices, run.at_most)} {noun}"
    else:
        saved = "unknown"
    of_run = ""
    if run.is_whole and run.run_hours is not None:
        long = duration(run.run_hours * MS_PER_HOUR)
        of_run = f"{_part(run.run_saving_share, at_most=run.at_most)} of {long}"
    rules = [finding.rule for finding in run.findings]
    others = f" and {len(rules) - RULES} more" if len(rules) > RULES else ""
    many = f"{run.devices:,} \N{MULTIPLICATION SIGN} " if run.devices and run.devices > 1 else ""
    return (
        saved,
        of_run,
        _part(run.saving_share, at_most=run.saving_bound == Bound.AT_MOST.value),
        milliseconds(run.step_ms),
        f"{', '.join(rules[:RULES])}{others}",
        name(f"{many}{run.on or 'unknown device'}"),
        run.recorded.removesuffix("Z").replace("T", " "),
    )


def job_cells(job: Sequence[FleetRun]) -> tuple[str, ...]:
    """Return the runs of a job as a row; its last saving is that of the step."""
    first, last = job[0], job[-1]
    change = (last.step_ms or 0.0) / (first.step_ms or 1.0) - 1
    changed = f"{share(abs(change))} {'longer' if change >= 0 else 'shorter'}"
    recorded = " to ".join(dict.fromkeys((first.recorded[:10], last.recorded[:10])))
    return (
        name(last.job),
        name(last.on),
        f"{len(job):,}",
        span(job),
        changed if len(job) > 1 else "",
        _part(last.saving_share, at_most=last.saving_bound == Bound.AT_MOST.value),
        recorded if all(run.recorded for run in job) else "dates unknown: by place",
    )


def span(job: Sequence[FleetRun]) -> str:
    """Return the first and the last step of a job."""
    return " → ".join(milliseconds(run.step_ms) for run in job[:: max(1, len(job) - 1)])


def _part(share_of_step: float | None, *, at_most: bool) -> str:
    """Return a share of the step that could be saved, with ≤ where that is a ceiling."""
    if not share_of_step:
        return "unknown" if share_of_step is None else NOTHING
    return f"≤ {share(share_of_step).replace('>99', '100')}" if at_most else share(share_of_step)


def _limited(number: float, at_most: bool) -> str:  # noqa: FBT001 - one private flag
    return f"{'≤ ' if at_most else ''}{amount(number)}"


def render(report: FleetReport) -> str:
    """Return the whole page."""
    data, kept = _data(report)
    jobs = [job for job in report.jobs[:JOBS] if len(job) > 1]
    return fill(
        "fleet.html.jinja",
        report=report,
        headline=headline(report),
        notes=notes(report),
        faults=faults(report),
        failures=failures(report),
        columns=COLUMNS,
        lines=[(run, cells(run, report)) for run in report.runs[:SHOWN]],
        jobs=[(job_cells(job), span(job), _points([run.step_ms or 0.0 for run in job])) for job in jobs],
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
        *shown, _, device, recorded = cells(run, report)
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


def sections(report: FleetReport, width: int) -> Iterator[RenderableType]:
    """Yield what a terminal shows: what could be saved, by which faults and in which runs."""
    yield Text(f"{headline(report)}.", style="bold")
    yield Text("\n".join(notes(report)))
    if report.faults:
        yield grid_table("Faults over all runs", faults(report).only(range(1, 5)), ROWS, width, "on the page")
    if report.runs:
        rows, room = [], max(24, width - 46)
        for run in report.runs[:ROWS]:
            saved, of_run, share, step, findings, *_ = cells(run, report)
            place = name(run.place)
            place = place if len(place) <= room else f"…{place[1 - room :]}"
            told = f"{place}\n{shorten(name(run.job), room - 12)} · {step}\n{findings or 'no finding'}"
            rows.append(tuple(map(Text, (saved, of_run or f"{share} of the step", told))))
        table = fitted(rows, width, header=("could be saved", "share", "run"), numbers=(0, 1))
        left_out = more(len(report.runs) - ROWS, "on the page")
        yield Group(Text("Runs that waste most", style="bold"), table, *left_out)
    if report.failed:
        shown = failures(report).first(FAILED)
        lines = [Text(error if place in error else f"{place}: {error}") for place, _, error in shown.rows]
        yield Group(Text("Not diagnosed", style="bold"), *lines, *more(shown.omitted, "on the page"))
