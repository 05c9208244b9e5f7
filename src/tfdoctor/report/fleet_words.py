"""What many runs waste, in sentences and as cells of tables."""

from collections.abc import Sequence

from tfdoctor.diagnosis.fleet_report import FleetReport, FleetRun
from tfdoctor.report.tables import Grid, texts
from tfdoctor.terms.humanize import amount, counted, dollars, duration, milliseconds, share
from tfdoctor.terms.text import capitalized, name
from tfdoctor.terms.verdict import Bound

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
        _of_step(run),
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
        _of_step(last),
        recorded if all(run.recorded for run in job) else "dates unknown: by place",
    )


def span(job: Sequence[FleetRun]) -> str:
    """Return the first and the last step of a job."""
    return " → ".join(milliseconds(run.step_ms) for run in job[:: max(1, len(job) - 1)])


def _of_step(run: FleetRun) -> str:
    return _part(run.saving_share, at_most=run.saving_bound == Bound.AT_MOST.value)


def _part(share_of_step: float | None, *, at_most: bool) -> str:
    """Return a share of the step that could be saved, with ≤ where that is a ceiling."""
    if not share_of_step:
        return "unknown" if share_of_step is None else NOTHING
    return f"≤ {share(share_of_step).replace('>99', '100')}" if at_most else share(share_of_step)


def _limited(number: float, at_most: bool) -> str:  # noqa: FBT001 - one private flag
    return f"{'≤ ' if at_most else ''}{amount(number)}"
