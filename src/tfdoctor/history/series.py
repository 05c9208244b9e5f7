"""A series of runs: its metrics with their changes, its findings, and what else changed."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tfdoctor.diagnosis.history_report import (
    Accepted,
    ChangePoint,
    FindingHistory,
    HistoryRun,
    MetricHistory,
    NamedBaseline,
    RunMetric,
    Series,
)
from tfdoctor.history import change_points, gate
from tfdoctor.history.runs import ReadRun
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Severity

UNTRACED, SHOWN = "median step outside of the traced ones", "step of the report"

WHAT = {RunMetric.RUN: "the run without tfdoctor's own work", RunMetric.MEMORY: "highest resident memory"}


class Demand(Record, kw_only=True):
    """What the newest run of each series must keep to; nothing where both limits are None."""

    last: int
    limit: float | None = None  # of a metric's regression
    severity: Severity | None = None  # of a finding that the last runs do not have


def series(
    read: Sequence[ReadRun],
    demand: Demand,
    titles: dict[str, str],
    baselines: Sequence[NamedBaseline],
    accepted: Sequence[Accepted],
) -> Series:
    """Return the series of runs that share a key, in their order; what is kept is that of their program."""
    what, runs = _with_steps(read)
    metrics = [_metric(metric, what, runs, demand, accepted) for metric in RunMetric]
    key = read[0].key
    return Series(
        program=key.program,
        arguments=key.arguments,
        machine=key.machine,
        runs=runs,
        metrics=tuple(one for one in metrics if one is not None),
        findings=tuple(_findings(runs, demand, titles, accepted)),
        baselines=tuple(baselines),
        accepted=tuple(accepted),
        notes=tuple(_notes(read)),
    )


def newest(runs: Sequence[HistoryRun]) -> int:
    """Return the place of the first run of the newest commit: several runs of one commit are judged together."""
    last, at = runs[-1], len(runs) - 1
    while at and last.commit and _same(runs[at - 1], last):
        at -= 1
    return at


def _same(one: HistoryRun, other: HistoryRun) -> bool:
    """Say whether two runs are of the same files, as far as that is known."""
    return one.commit == other.commit and not one.changed and not other.changed


def _with_steps(read: Sequence[ReadRun]) -> tuple[str, tuple[HistoryRun, ...]]:
    """Return the runs with their steps, and what these are: of all the same, the untraced one where all have it.

    The time of a run that was ended after its traced steps is left out, unless all were.
    """
    if not all(one.ended_early for one in read):
        read = [one.without_time() if one.ended_early else one for one in read]
    timed = [one for one in read if one.untraced_ms or one.shown_ms]
    untraced = all(one.untraced_ms for one in timed)
    steps = [one.untraced_ms if untraced else one.shown_ms for one in read]
    runs = tuple(one.with_step(step) for one, step in zip(read, steps, strict=True))
    return UNTRACED if untraced else SHOWN, runs


def _metric(
    metric: RunMetric, step: str, runs: Sequence[HistoryRun], demand: Demand, accepted: Sequence[Accepted]
) -> MetricHistory | None:
    """Return a metric over the runs; None where no run has it."""
    values = tuple(run.values.get(metric) for run in runs)
    if not any(values):
        return None
    known = [at for at, value in enumerate(values) if value]
    mine = [one for one in accepted if one.what == metric.value]
    changes = tuple(_changes(values, known, runs, mine))
    few = f"{counted(len(known), 'run')} of at least {change_points.FEWEST}"
    first = newest(runs)
    starts = [at for one in mine if (at := place_of(one.commit, runs)) is not None]
    begin = next(iter([at for at in known if at < first][-demand.last :]), first)
    span = gate.reference(changes, starts, (begin, first))
    before = [value for value in values[span.start : span.end] if value]
    after = [value for value in values[first:] if value]
    return MetricHistory(
        metric=metric,
        what=step if metric is RunMetric.STEP else WHAT[metric],
        values=values,
        changes=changes,
        why_no_changes=few if len(known) < change_points.FEWEST else "",
        check=gate.checked(after, before, demand.limit, span.why),
    )


def _changes(
    values: Sequence[float | None], known: Sequence[int], runs: Sequence[HistoryRun], accepted: Sequence[Accepted]
) -> Iterator[ChangePoint]:
    """Yield the change points, with who accepted the change at the commit of one."""
    series = np.array([values[at] for at in known], dtype=np.float64)
    places = change_points.change_points(series)
    bounds = (0, *places, len(known))
    for start, at, end in zip(bounds, places, bounds[2:], strict=False):
        first = known[at]
        yield ChangePoint(
            at=first,
            before=float(np.median(series[start:at])),
            after=float(np.median(series[at:end])),
            accepted=_accepted_near(first, runs, accepted),
        )


def _accepted_near(at: int, runs: Sequence[HistoryRun], accepted: Sequence[Accepted]) -> Accepted | None:
    """Return what was accepted at a change point, or as few runs from it as it may be off by."""
    for one in accepted:
        place = place_of(one.commit, runs)
        if place is not None and abs(place - at) <= NEAR:
            return one
    return None


# Runs by which a change point may lie beside the commit that made the change, where that is little more than the
# noise.
NEAR = 2


def is_of(commit: str, run: HistoryRun) -> bool:
    """Say whether a run is of a commit, by its hash or the beginning of it."""
    return bool(run.commit) and run.commit.startswith(commit)


def place_of(commit: str, runs: Sequence[HistoryRun]) -> int | None:
    """Return the place of the first run of a commit."""
    return next((at for at, run in enumerate(runs) if is_of(commit, run)), None)


def _findings(
    runs: Sequence[HistoryRun], demand: Demand, titles: dict[str, str], accepted: Sequence[Accepted]
) -> Iterator[FindingHistory]:
    """Yield the findings, those of the newest run first, then by the number of runs that have them."""
    rules = {rule for run in runs for rule in run.findings}
    found = {rule: tuple(rule in run.findings if rule in run.checked else None for run in runs) for rule in rules}

    def rank(rule: str) -> tuple[bool, int, str]:
        return not found[rule][-1], -found[rule].count(True), rule

    for rule in sorted(rules, key=rank):
        mine = next((one for one in accepted if one.what == rule), None)
        last = next(run.findings[rule] for run in reversed(runs) if rule in run.findings)
        appeared, gone = _appeared_and_gone(found[rule])
        yield FindingHistory(
            rule=rule,
            title=titles.get(rule, rule),
            found=found[rule],
            last=last,
            appeared=appeared,
            gone=gone,
            new=mine is None and _is_new(rule, runs, demand),
            accepted=mine,
        )


def _appeared_and_gone(found: Sequence[bool | None]) -> tuple[int | None, int | None]:
    """Return where a finding came after its last absence, and the first run without it after the last with it."""
    last = max(at for at, one in enumerate(found) if one)
    absent = max((at for at, one in enumerate(found[:last]) if one is False), default=None)
    appeared = None
    if absent is not None:
        appeared = next(at for at in range(absent, last + 1) if found[at])
    gone = next((at for at in range(last + 1, len(found)) if found[at] is False), None)
    return appeared, gone


def _is_new(rule: str, runs: Sequence[HistoryRun], demand: Demand) -> bool:
    """Say whether the newest run has a finding that counts, and the runs before it were checked and had none."""
    finding, first = runs[-1].findings.get(rule), newest(runs)
    if finding is None or demand.severity is None or finding.severity is None:
        return False
    before = [run for run in runs[:first] if rule in run.checked][-demand.last :]
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


SHORT = 9  # Characters of a commit's hash that are shown: git's own number in a large repository
