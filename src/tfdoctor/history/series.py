"""The history of runs: series in the order of their commits, their metrics and findings, and what else changed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tfdoctor import __version__
from tfdoctor.diagnosis.history_report import (
    Accepted,
    ChangePoint,
    FindingHistory,
    History,
    HistoryRun,
    MetricHistory,
    RunMetric,
    Series,
)
from tfdoctor.history import change_points, gate
from tfdoctor.history.kept import SHOWN, UNTRACED, KeptHistory
from tfdoctor.history.runs import ReadRun
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Severity

WHAT = {RunMetric.RUN: "the run without tfdoctor's own work", RunMetric.MEMORY: "highest resident memory"}
# Runs by which a change point may lie beside the commit that made the change, where that is little more than the
# noise.
NEAR = 2
SHORT = 9  # Characters of a commit's hash that are shown: git's own number in a large repository


class Demand(Record, kw_only=True):
    """What the newest run of each series must keep to; nothing where both limits are None."""

    last: int
    limit: float | None = None  # of a metric's regression
    severity: Severity | None = None  # of a finding that the last runs do not have


def history(
    read: Sequence[ReadRun],
    kept: KeptHistory,
    demand: Demand,
    titles: Mapping[str, str],
    unread: Sequence[tuple[str, str]] = (),
) -> History:
    """Return the series of these runs, those whose newest run is the newest first."""
    groups: dict[tuple[str, str, str], list[ReadRun]] = defaultdict(list)
    for one in sorted(read, key=lambda one: one.order):
        groups[one.key].append(one)
    newest_first = sorted(groups.values(), key=lambda runs: runs[-1].order, reverse=True)
    return History(
        version=__version__,
        series=tuple(_series(runs, kept, demand, titles) for runs in newest_first),
        unread=tuple(unread),
        last=demand.last,
        limit=demand.limit,
    )


def _series(read: Sequence[ReadRun], kept: KeptHistory, demand: Demand, titles: Mapping[str, str]) -> Series:
    """Return the series of runs that share a key, in their order; what is kept is that of their program.

    All steps are the same: the untraced one where all runs have it. The time of a run that was ended after its
    traced steps is left out, unless all were.
    """
    untraced = all(one.untraced_ms for one in read if one.untraced_ms or one.shown_ms)
    all_early = all(one.ended_early for one in read)
    runs = tuple(
        one.with_step(one.untraced_ms if untraced else one.shown_ms, timed=all_early or not one.ended_early)
        for one in read
    )
    (program, arguments, machine), step = read[0].key, UNTRACED if untraced else SHOWN
    accepted = tuple(one for one in kept.accepted if one.program == program)
    metrics = [_metric(metric, step, runs, demand, accepted) for metric in RunMetric]
    return Series(
        program=program,
        arguments=arguments,
        machine=machine,
        runs=runs,
        metrics=tuple(one for one in metrics if one is not None),
        findings=tuple(_findings(runs, demand, titles, accepted)),
        baselines=tuple(one for one in kept.baselines if one.program == program),
        accepted=accepted,
        notes=tuple(_notes(read)),
    )


def _newest(runs: Sequence[HistoryRun]) -> int:
    """Return the place of the first run of the newest commit: runs of one commit and the same files are one."""
    last, at = runs[-1], len(runs) - 1
    if last.commit and not last.changed:
        while at and runs[at - 1].commit == last.commit and not runs[at - 1].changed:
            at -= 1
    return at


def _place_of(commit: str, runs: Sequence[HistoryRun]) -> int | None:
    """Return the place of the first run of a commit, by its hash or the beginning of it."""
    return next((at for at, run in enumerate(runs) if run.commit and run.commit.startswith(commit)), None)


def _metric(
    metric: RunMetric, step: str, runs: Sequence[HistoryRun], demand: Demand, accepted: Sequence[Accepted]
) -> MetricHistory | None:
    """Return a metric over the runs; None where no run has it."""
    values = tuple(run.values.get(metric) for run in runs)
    if not any(values):
        return None
    known = [at for at, value in enumerate(values) if value]
    places = [(_place_of(one.commit, runs), one) for one in accepted if one.what == metric]
    mine = [(at, one) for at, one in places if at is not None]
    changes = tuple(_changes(values, known, mine))
    few = f"{counted(len(known), 'run')} of at least {change_points.FEWEST}"
    first = _newest(runs)
    begin = next(iter([at for at in known if at < first][-demand.last :]), first)
    start, end, why = gate.reference(changes, [at for at, _ in mine], (begin, first))
    before = [value for value in values[start:end] if value]
    after = [value for value in values[first:] if value]
    return MetricHistory(
        metric=metric,
        what=step if metric is RunMetric.STEP else WHAT[metric],
        values=values,
        changes=changes,
        why_no_changes=few if len(known) < change_points.FEWEST else "",
        check=gate.checked(after, before, demand.limit, why),
    )


def _changes(
    values: Sequence[float | None], known: Sequence[int], accepted: Sequence[tuple[int, Accepted]]
) -> Iterator[ChangePoint]:
    """Yield the change points, with who accepted the change there, or as few runs from it as it may be off by."""
    series = np.array([values[at] for at in known], dtype=np.float64)
    places = change_points.change_points(series)
    bounds = (0, *places, len(known))
    for start, at, end in zip(bounds, places, bounds[2:], strict=False):
        yield ChangePoint(
            at=known[at],
            before=float(np.median(series[start:at])),
            after=float(np.median(series[at:end])),
            accepted=next((one for place, one in accepted if abs(place - known[at]) <= NEAR), None),
        )


def _findings(
    runs: Sequence[HistoryRun], demand: Demand, titles: Mapping[str, str], accepted: Sequence[Accepted]
) -> Iterator[FindingHistory]:
    """Yield the findings, those of the newest run first, then by the number of runs that have them."""
    rules = {rule for run in runs for rule in run.findings}
    found = {rule: tuple(rule in run.findings if rule in run.checked else None for run in runs) for rule in rules}
    for rule in sorted(rules, key=lambda rule: (not found[rule][-1], -found[rule].count(True), rule)):
        mine, seen = next((one for one in accepted if one.what == rule), None), found[rule]
        last = max(at for at, one in enumerate(seen) if one)
        absent = max((at for at, one in enumerate(seen[:last]) if one is False), default=None)
        yield FindingHistory(
            rule=rule,
            title=titles.get(rule, rule),
            found=seen,
            last=next(run.findings[rule] for run in reversed(runs) if rule in run.findings),
            appeared=None if absent is None else seen.index(True, absent),
            gone=next((at for at in range(last + 1, len(seen)) if seen[at] is False), None),
            new=mine is None and _is_new(rule, runs, demand),
            accepted=mine,
        )


def _is_new(rule: str, runs: Sequence[HistoryRun], demand: Demand) -> bool:
    """Say whether the newest run has a finding that counts, and the runs before it were checked and had none."""
    finding = runs[-1].findings.get(rule)
    if finding is None or demand.severity is None or finding.severity is None:
        return False
    before = [run for run in runs[: _newest(runs)] if rule in run.checked][-demand.last :]
    counts = Severity[finding.severity.upper()] >= demand.severity
    return counts and len(before) >= gate.FEWEST and not any(rule in run.findings for run in before)


def _notes(read: Sequence[ReadRun]) -> Iterator[str]:
    """Yield what else changed between two runs: versions and the batch size, which are no change of the program."""
    for earlier, later in pairwise(read):
        before = dict(earlier.traits)
        for name, value in later.traits:
            if value and before.get(name) and before[name] != value:
                at = later.run.commit[:SHORT] or later.run.recorded or later.run.place
                yield f"with {at}, {name} changed from {before[name]} to {value}"
