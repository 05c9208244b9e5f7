"""What the runs of a fleet waste, ranked; what one fault costs over all of them; and how jobs develop."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import FleetCopy, FleetFault, FleetReport, FleetRun, Waste, product
from tfdoctor.facts.kit import by_key
from tfdoctor.fleet.places import job
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.verdict import Bound

# Share of the runs that must have a known length to rank all by device-hours: others would come last unseen.
MOST = 0.9
LOWEST, HIGHEST = 0.0001, 100_000.0  # US dollars per hour: less than a virtual core, more than any device


def device_prices(texts: Iterable[str]) -> Mapping[str, float]:
    """Return US dollars per device-hour: of ``H100=3.20`` by a part of devices' names, of ``3.20`` last, by "".

    Raises:
        ConfigError: one is not a price.
    """
    named, others = dict[str, float](), dict[str, float]()
    for text in texts:
        whole, sign, written = text.rpartition("=")
        name = whole.strip()
        if sign and (not name or "=" in name or "," in name):
            raise ConfigError(
                f"--usd-per-device-hour: {name!r} is not the name of one device: repeat the option for each."
            )
        try:
            price = float(written)
        except ValueError:
            price = 0.0
        if not LOWEST <= price <= HIGHEST:
            raise ConfigError(
                f"--usd-per-device-hour: {written.strip()!r} is not a price: write 3.20, or H100=3.20 for a device."
            )
        if sign:
            named.setdefault(name, price)
        else:
            others[""] = price
    return named | others


def report(
    rows: Iterable[FleetRun], prices: Mapping[str, float], titles: Mapping[str, str], left: int = 0
) -> FleetReport:
    """Return the report on these rows; recordings with the same files count once. ``titles`` are those of rules."""
    places = by_key((run.digest or run.key, run) for run in sorted(rows, key=lambda run: run.place))
    single = [
        replace(first, copies=tuple(FleetCopy(run.place, run.key, run.stamp) for run in others))
        for first, *others in places.values()
    ]
    runs = []
    for run in (run for run in single if not run.failure):
        device = run.on.lower()
        price = next((price for name, price in prices.items() if name.lower() in device), None)
        per_hour, whole = product(run.wasted_devices, price), product(run.wasted_device_hours, price)
        name = job(run.place, run.script)
        runs.append(replace(run, job=name, wasted_usd_per_hour=per_hour, wasted_usd=whole))
    known = [run for run in runs if run.wasted_devices is not None]
    timed = [run for run in known if run.device_hours is not None]
    by_hours = len(timed) >= MOST * len(known)

    def rank(run: FleetRun) -> tuple[object, ...]:
        """Rank by what a run wastes: dollars, then device-hours or devices; runs without these come last."""
        usd, amount = run.wasted_usd_per_hour, run.wasted_devices
        if by_hours:
            usd, amount = run.wasted_usd, run.wasted_device_hours
        rest = (-(run.wasted_devices or 0.0), -(run.lost_share or 0.0), run.place)
        return (amount is None, -(usd or 0.0), -(amount or 0.0), *rest)

    runs.sort(key=rank)
    return FleetReport(
        version=__version__,
        runs=tuple(runs),
        failed=tuple(run for run in single if run.failure),
        waste=_waste((run, run.lost_share) for run in known),
        devices=sum(run.devices or 0 for run in known),
        device_hours=sum(run.device_hours or 0.0 for run in timed),
        timed=len(timed),
        faults=_faults(runs, titles, by_hours=by_hours),
        jobs=_jobs(runs),
        priced=bool(prices),
        unpriced=sum(run.wasted_usd_per_hour is None for run in known) if prices else 0,
        by_hours=by_hours,
        left=left,
    )


def _waste(shares: Iterable[tuple[FleetRun, float | None]]) -> Waste:
    """Return what runs waste of which a share of the time is lost; a run without a share is left out."""
    known = [(run, share) for run, share in shares if share is not None]
    ceilings = [run for run, share in known if share > 0 and run.at_most]

    def dollars(of: Callable[[FleetRun], float | None]) -> float | None:
        parts = ((of(run), share / run.lost_share if run.lost_share else 0.0) for run, share in known)
        found = [usd * part for usd, part in parts if usd is not None]
        return sum(found) if found else None

    return Waste(
        runs=len(known),
        devices=sum(share * (run.devices or 0) for run, share in known),
        device_hours=sum(share * (run.device_hours or 0.0) for run, share in known),
        usd_per_hour=dollars(lambda run: run.wasted_usd_per_hour),
        usd=dollars(lambda run: run.wasted_usd),
        at_most=bool(ceilings),
        hours_at_most=any(run.device_hours is not None for run in ceilings),
    )


def _faults(runs: Sequence[FleetRun], titles: Mapping[str, str], *, by_hours: bool) -> tuple[FleetFault, ...]:
    """Return the faults, the most expensive first; each as if changed alone, at most what all changes save."""
    found: dict[str, list[tuple[FleetRun, float | None, str]]] = defaultdict(list)
    for run in runs:
        for finding in run.findings:
            share = finding.run_share if run.is_whole else finding.share
            share = None if share is None or run.lost_share is None else max(0.0, min(share, run.lost_share))
            if share != 0:
                found[finding.rule].append((run, share, finding.bound))

    def lost(pair: tuple[FleetRun, float]) -> tuple[float, float]:
        """Return what a run loses by the fault, in what faults are ranked by; of two equal ones, the hours."""
        run, share = pair
        usd, amount = run.wasted_usd_per_hour, float(run.devices or 0)
        if by_hours:
            usd, amount = run.wasted_usd, run.device_hours or 0.0
        return share * (amount if usd is None else usd / (run.lost_share or 1.0)), share * (run.device_hours or 0.0)

    def fault(rule: str, own: Sequence[tuple[FleetRun, float | None, str]]) -> FleetFault:
        known = [(run, share) for run, share, _ in own if share is not None]
        ceilings = [run for run, share, bound in own if share and bound == Bound.AT_MOST.value]
        timed = any(run.device_hours is not None for run in ceilings)
        return FleetFault(
            rule=rule,
            title=titles.get(rule, rule),
            waste=replace(_waste(known), at_most=bool(ceilings), hours_at_most=timed),
            unknown=len(own) - len(known),
            worst=max(known, key=lost)[0].place if known else "",
        )

    def dearest(fault: FleetFault) -> tuple[object, ...]:
        waste = fault.waste
        usd, amount = (waste.usd, waste.device_hours) if by_hours else (waste.usd_per_hour, waste.devices)
        return (-(usd or 0.0), -amount, -waste.devices, -fault.unknown, fault.rule)

    return tuple(sorted((fault(rule, own) for rule, own in found.items()), key=dearest))


def _jobs(runs: Sequence[FleetRun]) -> tuple[tuple[FleetRun, ...], ...]:
    """Return the runs of each job, those with the most first; runs on other devices are another job's."""
    in_order = sorted(runs, key=lambda run: (run.recorded, run.place))
    groups = by_key(((run.job, run.on), run) for run in in_order if run.step_ms is not None)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return tuple(tuple(own) for _, own in ranked)
