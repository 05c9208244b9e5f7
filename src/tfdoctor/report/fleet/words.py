"""What many runs waste, in sentences."""

from tfdoctor.diagnosis.fleet_report import FleetReport, FleetRun, PricedRun, Waste
from tfdoctor.terms.humanize import amount, counted, dollars, duration, share
from tfdoctor.terms.text import capitalized
from tfdoctor.terms.verdict import Bound

# What rules save of a run for which they found no change: other changes may help, so it is not called healthy.
NOTHING = "none known"


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


def notes(report: FleetReport) -> tuple[str, ...]:
    """Return what a reader needs to know of the figures."""
    told = [_money(report), _lengths(report)]
    if without := sum(one.run.lost_share is None for one in report.runs):
        runs = counted(without, "run")
        told.append(f"For {runs} the saving is unknown: the report of the run says why.")
    if report.failed:
        recordings = capitalized(counted(len(report.failed), "recording"))
        told.append(f"{recordings} could not be diagnosed.")
    if report.left:
        recordings = counted(report.left, "recording was", "recordings were")
        told.append(
            f"{capitalized(recordings)} not examined, because the command was interrupted: "
            "the same command continues."
        )
    return tuple(filter(None, told))


def _money(report: FleetReport) -> str:
    waste = report.waste
    if not report.priced:
        return ""
    if waste.usd_per_hour is None:
        return "No price was given for any of these devices."
    known = f"{_at_most(waste.hours_at_most)}{dollars(waste.usd)} over the runs whose length is known, and "
    rate = f"{_at_most(waste.at_most)}{dollars(waste.usd_per_hour)} per hour while all of them train"
    unpriced = counted(report.unpriced, "run")
    missing = f" without {unpriced} whose device has no price" if report.unpriced else ""
    return f"At the given prices that is {known if waste.usd else ''}{rate}{missing}."


def _at_most(ceiling: bool) -> str:  # noqa: FBT001 - one private flag
    return "at most " if ceiling else ""


def _lengths(report: FleetReport) -> str:
    unknown = len(report.runs) - sum(1 for one in report.runs if one.run.lost_hours is not None)
    if not unknown or not report.waste.runs:
        return ""
    do, are = ("does", "it is") if unknown == 1 else ("do", "they are")
    ranked = (
        f"{are} ranked after the others"
        if report.by_hours
        else "so runs are ranked by the devices that could be saved while they train"
    )
    return (
        f"{capitalized(counted(unknown, 'recording'))} {do} not say how long the run lasted, as traces of other "
        f"profilers do not; {ranked}."
    )


def saved_devices(waste: Waste) -> str:
    """Return the devices that could be saved, with ≤ where that is a ceiling."""
    return f"{_ceiling(waste.at_most)}{amount(waste.devices)}"


def part(share_of_step: float | None, *, at_most: bool) -> str:
    """Return a share of the step that could be saved, with ≤ where that is a ceiling."""
    if share_of_step is None:
        return "unknown"
    if not share_of_step:
        return NOTHING
    if not at_most:
        return share(share_of_step)
    return f"≤ {share(share_of_step).replace('>99', '100')}"


def saved_hours(waste: Waste) -> str:
    """Return the device-hours that could be saved; "" where no length is known."""
    return f"{_ceiling(waste.hours_at_most)}{amount(waste.device_hours)}" if waste.device_hours else ""


def saved_share(run: FleetRun) -> str:
    """Return the share of the step that could be saved."""
    return part(run.saving_share, at_most=run.saving_bound == Bound.AT_MOST.value)


def saved_of_run(run: FleetRun) -> str:
    """Return the share of the whole run that could be saved, and its length; "" where that is unknown."""
    if not run.is_whole or run.run_hours is None:
        return ""
    long = duration(run.run_hours * MS_PER_HOUR)
    return f"{part(run.run_saving_share, at_most=run.at_most)} of {long}"


MS_PER_HOUR = 3_600_000.0


def saved_by(one: PricedRun, *, by_hours: bool) -> str:
    """Return what a run wastes: device-hours, or devices where runs are ranked by these."""
    run = one.run
    most = _ceiling(run.at_most)
    if run.lost_share == 0:
        return NOTHING
    if by_hours and run.wasted_device_hours is not None:
        return f"{most}{amount(run.wasted_device_hours)} device-h"
    if run.wasted_devices is not None:
        devices = amount(run.wasted_devices)
        return f"{most}{devices} {'device' if devices == '1' else 'devices'}"
    return "unknown"


def devices(run: FleetRun) -> str:
    """Return the devices of a run, with their number if there are several."""
    name = run.device_name or run.device or "unknown device"
    return f"{run.devices:,} \N{MULTIPLICATION SIGN} {name}" if run.devices and run.devices > 1 else name


def _ceiling(at_most: bool) -> str:  # noqa: FBT001 - one private flag
    return "≤ " if at_most else ""
