"""What the runs of a fleet waste, ranked; what one fault costs over all of them; and how jobs develop."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import (
    FleetCopy,
    FleetFault,
    FleetJob,
    FleetReport,
    FleetRun,
    PricedRun,
    TrendPoint,
    Waste,
)
from tfdoctor.fleet import names
from tfdoctor.fleet.prices import DevicePrices
from tfdoctor.terms.verdict import Bound

# Share of the runs that must have a known length to rank all by device-hours: others would come last unseen.
MOST = 0.9


def report(rows: Iterable[FleetRun], prices: DevicePrices, titles: Mapping[str, str], left: int = 0) -> FleetReport:
    """Return the report on these rows; recordings with the same files count once. ``titles`` are those of rules."""
    single = _single(rows)
    runs = [_priced(run, prices) for run in single if not run.failure]
    known = [one for one in runs if one.run.wasted_devices is not None]
    timed = [one for one in known if one.run.device_hours is not None]
    by_hours = len(timed) >= MOST * len(known)
    runs.sort(key=lambda one: _rank(one, by_hours=by_hours))
    return FleetReport(
        version=__version__,
        runs=tuple(runs),
        failed=tuple(sorted((run for run in single if run.failure), key=lambda run: run.place)),
        waste=_waste((one, one.run.lost_share) for one in known),
        devices=sum(one.run.devices or 0 for one in known),
        device_hours=sum(one.run.device_hours or 0.0 for one in timed),
        timed=len(timed),
        faults=_faults(runs, titles, by_hours=by_hours),
        jobs=_jobs(runs),
        priced=prices.given,
        unpriced=sum(1 for one in known if one.usd_per_hour is None) if prices.given else 0,
        by_hours=by_hours,
        left=left,
    )


def _single(rows: Iterable[FleetRun]) -> list[FleetRun]:
    """Return each content once, at the first of its places, with the number of the others."""
    places: dict[str, list[FleetRun]] = defaultdict(list)
    for run in sorted(rows, key=lambda run: run.place):
        places[run.digest or run.key].append(run)
    return [
        replace(first, copies=tuple(FleetCopy(run.place, run.key, run.stamp) for run in others))
        for first, *others in places.values()
    ]


def _priced(run: FleetRun, prices: DevicePrices) -> PricedRun:
    price = prices.of(run.device_name or run.device)
    return PricedRun(
        run=run,
        job=names.job(run.place, run.script),
        usd_per_hour=_times(run.wasted_devices, price),
        usd=_times(run.wasted_device_hours, price),
    )


def _times(amount: float | None, price: float | None) -> float | None:
    return None if amount is None or price is None else amount * price


def _rank(one: PricedRun, *, by_hours: bool) -> tuple[object, ...]:
    """Rank by what a run wastes: dollars, then device-hours or devices; runs without these come last."""
    run = one.run
    usd, amount = (one.usd, run.wasted_device_hours) if by_hours else (one.usd_per_hour, run.wasted_devices)
    rest = (-(run.wasted_devices or 0.0), -(run.lost_share or 0.0), run.place)
    return (amount is None, -(usd or 0.0), -(amount or 0.0), *rest)


def _waste(shares: Iterable[tuple[PricedRun, float | None]]) -> Waste:
    """Return what runs waste of which a share of the time is lost; a run without a share is left out."""
    total = Waste()
    for one, share in shares:
        if share is None:
            continue
        run, ceiling = one.run, share > 0 and one.run.at_most
        of_run = share / run.lost_share if run.lost_share else 0.0
        total = Waste(
            runs=total.runs + 1,
            devices=total.devices + share * (run.devices or 0),
            device_hours=total.device_hours + share * (run.device_hours or 0.0),
            usd_per_hour=_sum(total.usd_per_hour, one.usd_per_hour, of_run),
            usd=_sum(total.usd, one.usd, of_run),
            at_most=total.at_most or ceiling,
            hours_at_most=total.hours_at_most or (ceiling and run.device_hours is not None),
        )
    return total


def _sum(total: float | None, more: float | None, factor: float) -> float | None:
    return total if more is None else (total or 0.0) + more * factor


def _faults(runs: Sequence[PricedRun], titles: Mapping[str, str], *, by_hours: bool) -> tuple[FleetFault, ...]:
    """Return the faults, the most expensive first; each as if changed alone, at most what all changes save."""
    found: dict[str, list[tuple[PricedRun, float | None, str]]] = defaultdict(list)
    for one in runs:
        for finding in one.run.findings:
            share, most = one.run.share_of(finding), one.run.lost_share
            share = None if share is None or most is None else max(0.0, min(share, most))
            if share != 0:
                found[finding.rule].append((one, share, finding.bound))
    faults = [_fault(rule, titles.get(rule, rule), own, by_hours=by_hours) for rule, own in found.items()]
    return tuple(sorted(faults, key=lambda fault: _dearest(fault, by_hours=by_hours)))


def _fault(
    rule: str, title: str, own: Sequence[tuple[PricedRun, float | None, str]], *, by_hours: bool
) -> FleetFault:
    known = [(one, share) for one, share, _ in own if share is not None]
    waste = _waste(known)
    ceilings = [one.run for one, share, bound in own if share and bound == Bound.AT_MOST.value]
    timed = any(run.device_hours is not None for run in ceilings)
    worst = max(known, key=lambda pair: _lost(*pair, by_hours=by_hours), default=None)
    return FleetFault(
        rule=rule,
        title=title,
        waste=replace(waste, at_most=bool(ceilings), hours_at_most=timed),
        unknown=len(own) - len(known),
        worst=worst[0].run.place if worst else "",
    )


def _lost(one: PricedRun, share: float, *, by_hours: bool) -> tuple[float, float]:
    """Return what a run loses by a fault, in what the faults are ranked by; of two equal ones, the hours."""
    usd, amount = (one.usd, one.run.device_hours) if by_hours else (one.usd_per_hour, one.run.devices)
    whole = amount or 0 if usd is None else usd / (one.run.lost_share or 1.0)
    return share * whole, share * (one.run.device_hours or 0.0)


def _dearest(fault: FleetFault, *, by_hours: bool) -> tuple[object, ...]:
    waste = fault.waste
    usd, amount = (waste.usd, waste.device_hours) if by_hours else (waste.usd_per_hour, waste.devices)
    return (-(usd or 0.0), -amount, -waste.devices, -fault.unknown, fault.rule)


def _jobs(runs: Sequence[PricedRun]) -> tuple[FleetJob, ...]:
    """Return the jobs, those with the most runs first; runs on other devices are another job's."""
    groups: dict[tuple[str, str], list[PricedRun]] = defaultdict(list)
    for one in runs:
        if one.run.step_ms is not None:
            groups[one.job, one.run.device_name or one.run.device].append(one)
    jobs = []
    for (name, device), own in groups.items():
        ordered = sorted(own, key=lambda one: (one.run.recorded, one.run.place))
        points = tuple(
            TrendPoint(one.run.recorded, one.run.step_ms, one.run.saving_share, one.run.at_most)
            for one in ordered
            if one.run.step_ms is not None
        )
        jobs.append(FleetJob(name=name, device_name=device, points=points))
    return tuple(sorted(jobs, key=lambda job: (-len(job.points), job.name, job.device_name)))
