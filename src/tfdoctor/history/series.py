"""The history of runs: series in the order of their commits, their metrics and findings, and what else changed.

Whether the newest commit is slower than the runs before it is decided by what the differences of these show. The
usual value is the median of the logarithms of the last runs, and their spread is 1.4826 times the median absolute
deviation from it: neither sees a few odd runs (Rousseeuw and Croux, "Alternatives to the Median Absolute
Deviation", Journal of the American Statistical Association 88, 1993). A further run of the same program is within
Student's t times the spread of the usual value, widened because the median is an estimate too. The degrees of
freedom are 37 % of those of a standard deviation, as that is the efficiency of the deviation used (same source).
With normal noise, 2.5 % of the runs or fewer are above the interval, and with the heavy tails of Student's t with 3
degrees of freedom 6 %.
"""

# ruff: noqa: F403, F405 - one import of what a history is made of
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tfdoctor import __version__
from tfdoctor.compare.budgets import state
from tfdoctor.compare.step_times import LEAST_SPREAD
from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import *
from tfdoctor.facts.kit import by_key
from tfdoctor.history import change_points
from tfdoctor.history.runs import SHOWN, UNTRACED, KeptHistory, ReadRun
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.student_t import student
from tfdoctor.terms.verdict import Severity

WHAT = {RunMetric.RUN: "the run without tfdoctor's own work", RunMetric.MEMORY: "highest resident memory"}
# Runs by which a change point may lie beside the commit that made the change, where that is little more than the
# noise.
NEAR = 2
FEWEST = 5  # Runs below which nothing is decided: of 4, the spread is as good as unknown
NORMAL = 1.4826  # Standard deviation of a normal distribution for its median absolute deviation
EFFICIENCY = 0.37  # Of the median absolute deviation, relative to the standard deviation of normal noise
OF_MEDIAN = 1.57  # Variance of the median of normal noise, relative to that of the mean: pi / 2
# Relative difference up to which a level counts as the former one: medians of few runs of 2 % noise differ so.
SAME_LEVEL = 0.02


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
    groups = by_key((one.key, one) for one in sorted(read, key=lambda one: one.order))
    newest_first = sorted(groups.values(), key=lambda runs: runs[-1].order, reverse=True)
    series = tuple(_series(runs, kept, demand, titles) for runs in newest_first)
    return common(History, demand, version=__version__, series=series, unread=tuple(unread))


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


def _metric(
    metric: RunMetric, step: str, runs: Sequence[HistoryRun], demand: Demand, accepted: Sequence[Accepted]
) -> MetricHistory | None:
    values = tuple(run.values.get(metric) for run in runs)
    if not any(values):
        return None
    known = [at for at, value in enumerate(values) if value]
    mine = []
    for one in accepted:
        own = (at for at, run in enumerate(runs) if run.commit and run.commit.startswith(one.commit))
        if one.what == metric and (at := next(own, None)) is not None:
            mine.append((at, one))
    series = np.array([values[at] for at in known], dtype=np.float64)
    bounds = (0, *change_points.change_points(series), len(known))
    changes = tuple(
        ChangePoint(
            at=known[at],
            before=float(np.median(series[start:at])),
            after=float(np.median(series[at:end])),
            accepted=next((one for place, one in mine if abs(place - known[at]) <= NEAR), None),
        )
        for start, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False)
    )
    first, fewest = _newest(runs), change_points.FEWEST
    begin = next(iter([at for at in known if at < first][-demand.last :]), first)
    start, end, why = reference(changes, [at for at, _ in mine], (begin, first))
    before = [value for value in values[start:end] if value]
    after = [value for value in values[first:] if value]
    return MetricHistory(
        metric=metric,
        what=step if metric is RunMetric.STEP else WHAT[metric],
        values=values,
        changes=changes,
        why_no_changes=f"{counted(len(known), 'run')} of at least {fewest}" if len(known) < fewest else "",
        check=checked(after, before, demand.limit, why),
    )


def _findings(
    runs: Sequence[HistoryRun], demand: Demand, titles: Mapping[str, str], accepted: Sequence[Accepted]
) -> Iterator[FindingHistory]:
    """Yield the findings, those of the newest run first, then by the number of runs that have them."""
    newest, earlier = runs[-1], runs[: _newest(runs)]
    rules = {rule for run in runs for rule in run.findings}
    found = {rule: tuple(rule in run.findings if rule in run.checked else None for run in runs) for rule in rules}
    for rule in sorted(rules, key=lambda rule: (not found[rule][-1], -found[rule].count(True), rule)):
        mine, seen = next((one for one in accepted if one.what == rule), None), found[rule]
        last = max(at for at, one in enumerate(seen) if one)
        absent = max((at for at, one in enumerate(seen[:last]) if one is False), default=None)
        before = [run for run in earlier if rule in run.checked][-demand.last :]
        now, least = newest.findings.get(rule), demand.severity
        counts = now and now.severity and least is not None and Severity[now.severity.upper()] >= least
        known = mine or len(before) < FEWEST or any(rule in run.findings for run in before)
        yield FindingHistory(
            rule=rule,
            title=titles.get(rule, rule),
            found=seen,
            last=next(run.findings[rule] for run in reversed(runs) if rule in run.findings),
            appeared=None if absent is None else seen.index(True, absent),
            gone=next((at for at in range(last + 1, len(seen)) if seen[at] is False), None),
            new=bool(counts and not known),
            accepted=mine,
        )


def _notes(read: Sequence[ReadRun]) -> Iterator[str]:
    """Yield what else changed between two runs: versions and the batch size, which are no change of the program."""
    for earlier, later in pairwise(read):
        before = dict(earlier.traits)
        for name, value in later.traits:
            if value and before.get(name) and before[name] != value:
                at = later.run.commit[:SHORT] or later.run.recorded or later.run.place
                yield f"with {at}, {name} changed from {before[name]} to {value}"


def reference(
    changes: Sequence[ChangePoint], starts: Sequence[int], window: tuple[int, int]
) -> tuple[int, int, str]:
    """Return from and to before which place runs are compared with the newest commit, and why no others are.

    They are those of a window, up to before the newest commit. An improvement or an accepted change begins a new
    level. A regression that nobody accepted does not: the runs after it are left out until a level as low as the
    former one, so that the gate fails until it is mended or accepted, or lies before the window. ``starts`` are
    places of accepted commits.
    """
    begin, newest = window
    end, why = newest, ""
    level = changes[0].before if changes else 0.0
    for change in (one for one in changes if one.at < newest):
        if change.at <= begin:
            level = change.after
        elif change.accepted or change.after <= level * (1 + SAME_LEVEL):
            begin, end, why, level = change.at, newest, "since the level changed", change.after
        elif change.share > 0:
            end, why = min(end, change.at), "before a regression that nobody accepted"
    accepted = max((one for one in starts if one <= newest), default=0)
    if accepted > begin:
        begin, end, why = accepted, newest if end <= accepted else end, "since the accepted change"
    return begin, end, why


def checked(
    newest: Sequence[float], before: Sequence[float], limit: float | None, why: str = ""
) -> RegressionCheck:
    """Return how the newest commit compares with the runs before it, and whether it is worse by more than a limit.

    ``why`` says which runs these are, where some are left out.
    """
    check = RegressionCheck(limit=limit, state=None, runs=len(before), why=why)
    if not newest:
        found = None if limit is None else BudgetState.UNKNOWN
        return replace(check, state=found, why="the newest run does not have it")
    value = float(np.median(newest))
    if len(before) < FEWEST:
        few = f"there {'is' if len(before) == 1 else 'are'} {counted(len(before), 'run')} to compare with"
        told = f"{f'{few} {why}' if why else few}, and at least {FEWEST} are needed"
        found = None if limit is None else BudgetState.UNCLEAR
        return replace(check, state=found, newest=value, why=told)
    logs = np.log(before)
    middle = float(np.median(logs))
    change = float(np.log(value)) - middle
    spread = max(LEAST_SPREAD, NORMAL * float(np.median(np.abs(logs - middle))))
    quantile = student(max(1.0, EFFICIENCY * (len(before) - 1)))
    half = quantile * spread * float(np.sqrt(1 + OF_MEDIAN / len(before)))  # of the interval of a further run
    low, high = (float(np.expm1(change + side)) for side in (-half, half))
    return replace(
        check,
        state=None if limit is None else state(limit, low, high, at_least=False),
        newest=value,
        usual=float(np.exp(middle)),
        change=float(np.expm1(change)),
        low=low,
        high=high,
    )
