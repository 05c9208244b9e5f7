"""What differs in two runs besides the whole step: parts, operations and input stages, phases, and the findings.

Findings are matched by rule and file, because lines and sentences change with the program. The script that ran is
one place in both runs, whatever its name is, and so is a line with the same text in a file that was renamed.
"""

# ruff: noqa: F403, F405 - one import of what a comparison is made of
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import get_args

import numpy as np

from tfdoctor.compare.reports import Widening, step_of
from tfdoctor.compare.step_times import *
from tfdoctor.diagnosis import PARTS, Diagnosis, Result
from tfdoctor.diagnosis.comparison import *
from tfdoctor.recording.manifest import program_of
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.student_t import student
from tfdoctor.terms.verdict import Finding, Healthy

# Share of the step by which a part, an operation or a stage must change, however even the steps are.
SMALLEST = 0.01
# Likewise a saving, to be called worse or better; and of the run, where a finding saves nothing of each step: a run
# is measured once.
SMALLEST_SAVING = 0.02
FEWEST_STEADY = 4  # Steady steps below which no part is called changed
# Share of the parts' change that is left of the whole step's, below which other parts make up for it.
COMPENSATED = 0.5
MOST = 20  # Movers that are kept: a comparison is read, and the reports of the two runs have all operations


def part_changes(before: Diagnosis, after: Diagnosis, widen: Widening, *, in_ms: bool) -> tuple[PartChange, ...]:
    """Return the parts that either run has, in display order; in ms, or in shares of its own run's step."""
    if not (before.steps.shown_breakdown_ms and after.steps.shown_breakdown_ms):
        return ()
    steps = [step_of(report) or 1.0 for report in (before, after)]
    units = (1.0, 1.0) if in_ms else steps
    least = SMALLEST * (max(steps) if in_ms else 1.0)
    found = []
    for part in _parts(before, after):
        (first, lower, upper), (last, lower_after, upper_after) = (
            _taken(report, part, unit) for report, unit in zip((before, after), units, strict=True)
        )
        below, above = _slack(first, last, widen) if in_ms else (0.0, 0.0)
        by = last - first - math.hypot(upper, lower_after) - below
        if last < first:
            by = first - last - math.hypot(lower, upper_after) - above
        changed = by > 0 and abs(last - first) > least if math.isfinite(by) else None
        found.append(PartChange(part=part, before=first, after=last, changed=changed))
    return tuple(found)


def _parts(*reports: Diagnosis) -> Sequence[str]:
    return [part for part in PARTS if any(report.steps.shown_breakdown_ms.get(part) for report in reports)]


def carried(parts: Sequence[PartChange]) -> float:
    """Return the change of the step by the parts that changed, ms; 0 where other parts make up for it."""
    changes = [part.after - part.before for part in parts if part.changed]
    by_parts, whole = sum(changes), sum(part.after - part.before for part in parts)
    largest = max(map(abs, changes), default=0.0)
    stands = by_parts * whole >= COMPENSATED * by_parts**2 and abs(by_parts) >= COMPENSATED * largest
    return by_parts if stands else 0.0


def step_by_parts(before: Diagnosis, after: Diagnosis, widen: Widening) -> Interval:
    """Return the change of the step as the sum of its parts, relative to the step before."""
    parts = _parts(before, after)
    half = math.hypot(*(_half_ms(_times(report, part)) for report in (before, after) for part in parts))
    first, last = (sum(report.steps.shown_breakdown_ms.values()) for report in (before, after))
    below, above = _slack(first, last, widen)
    return Interval(last / first - 1, (last - first - half - below) / first, (last - first + half + above) / first)


def _slack(before: float, after: float, widen: Widening) -> tuple[float, float]:
    """Return by how much a change may be smaller and larger, because of the conditions of the runs."""
    return after * -math.expm1(-widen.below), before * -math.expm1(-widen.above)


def _times(report: Diagnosis, part: str) -> Floats:  # of the steady steps, ms
    return np.array([row.parts_ms.get(part, 0.0) for row in report.steps.rows if row.steady])


def _taken(report: Diagnosis, part: str, unit: float) -> tuple[float, float, float]:
    """Return what a part takes, and how far below and above that it may be: not beyond what it took of any step.

    The step itself has the same bound, so that a step which clearly changed has a part that did.
    """
    times = _times(report, part)
    below = above = half = _half_ms(times)
    if math.isfinite(half):
        mean = float(times.mean())
        below, above = min(half, mean - float(times.min())), min(half, float(times.max()) - mean)
    return report.steps.shown_breakdown_ms.get(part, 0.0) / unit, below / unit, above / unit


def _half_ms(times: Floats) -> float:
    """Return half of the 95 % interval of a part, ms: by the sample, and by how much steps and runs differ."""
    if len(times) < FEWEST_STEADY:
        return math.inf
    error = bootstrap_error(times, lambda drawn: drawn.mean(axis=1))
    spread = max(quartile_spread(times), spread_of_runs(stretches(times, np.median)))
    return student(len(times) - 1) * math.hypot(error, spread)


def movers(before: Diagnosis, after: Diagnosis, certain: float, *, in_ms: bool) -> tuple[Mover, ...]:
    """Return the operations and stages that moved, most first; in ms, or in shares of the step.

    They must move by a percent of the step, and relative to their own time by at least ``certain``: how much slower
    a run must be for the steps to show it.
    """
    step = max(step_of(before) or 0.0, step_of(after) or 0.0) if in_ms else 1.0
    moved: list[tuple[float, str, Mover]] = []
    for kind in get_args(MoverKind):
        first, last = (_by_name(report, kind, 1.0 if in_ms else step_of(report)) for report in (before, after))
        known = first and last  # otherwise one of the runs does not know its times
        for name in dict.fromkeys([*first, *last]) if known else ():
            low, high = sorted((first.get(name, 0.0), last.get(name, 0.0)))
            ratio = math.log(high / low) if low > 0 else math.inf
            if high - low >= SMALLEST * step and ratio >= math.log1p(certain):
                mover = Mover(kind=kind, name=name, before=first.get(name), after=last.get(name))
                moved.append((low - high, name, mover))
    return tuple(mover for _, _, mover in sorted(moved, key=lambda one: one[:2])[:MOST])


def _by_name(report: Diagnosis, kind: str, unit: float | None) -> Mapping[str, float]:
    """Return the times per step; of several stages that the user wrote alike, or that have one name, their sum."""
    rows = [
        (f"{row.operation} ({row.layer})" if row.layer else row.operation, row.self_ms) for row in report.operations
    ]
    if kind == "stage":
        rows = [(stage.written or stage.name, stage.self_ms) for stage in report.pipeline]
    times: dict[str, float] = defaultdict(float)
    for name, ms in rows:
        times[name] += ms
    return {name: ms / unit for name, ms in times.items()} if unit else {}


def run_change(before: Diagnosis, after: Diagnosis) -> ChangeOfRun | None:
    """Return the times of the phases of two runs; None where one of them is not known whole.

    tfdoctor's own work is left out: how much of a run it takes depends on what was traced.
    """
    first, last = before.run, after.run
    if first is None or last is None or not (first.whole and last.whole):
        return None
    told = {row.phase for row in (*first.rows, *last.rows)} - {Phase.PROFILER}
    phases = [phase for phase in Phase if phase in told]
    return ChangeOfRun(
        before_ms=first.of(*phases),
        after_ms=last.of(*phases),
        phases=tuple(PhaseChange(phase=one, before_ms=first.of(one), after_ms=last.of(one)) for one in phases),
        epochs=(first.epochs, last.epochs),
        steps=(first.steps, last.steps),
        ended_early=first.ended_early or last.ended_early,
    )


class Found(Record, kw_only=True):
    """A finding about a run, with what it is matched by."""

    result: Result
    summary: str
    ms: float | None  # what it saves or takes of the compared step, which may have the cost of the profiler
    kind: AmountKind | None  # what that time is
    path: str  # of the first line to change; "" where none is known
    line: str  # the hash of that line
    in_script: bool  # of the run's command, whose path either may have more of
    led_by: str  # the rule of the finding that it belongs to; "" where it stands alone


def changes(before: Diagnosis, after: Diagnosis, certain: float) -> tuple[FindingChange, ...]:
    """Return all findings of two runs, new ones first.

    ``certain`` is the smallest relative difference of the step that the runs can show: a saving that changes by a
    smaller share of the step is the same. A finding is new or gone only if its rule was checked in the other run.
    It is shown by another where it belongs to that in each run that has it.
    """
    least_ms = max(certain, SMALLEST_SAVING) * (step_of(before) or step_of(after) or 0.0)
    first, last = list(_found(before)), list(_found(after))
    pairs: list[tuple[Found | None, Found | None]] = [(_same(now, first), now) for now in last]
    pairs += [(one, None) for one in first if _same(one, last) is None]
    checked, checked_after = (
        {one.rule.name for one in report.results if isinstance(one.outcome, Finding | Healthy)}
        for report in (before, after)
    )

    def change(earlier: Found | None, now: Found | None) -> FindingChange:
        shown = next(one for one in (now, earlier) if one)
        rule = shown.result.rule.name
        if earlier and now:
            state = _state(earlier, now, least_ms)
        elif now:
            state = FindingState.NEW if rule in checked else FindingState.UNCHECKED_BEFORE
        else:
            state = FindingState.GONE if rule in checked_after else FindingState.UNCHECKED_AFTER
        first_run, last_run = (one.result.run if one else None for one in (earlier, now))
        led_by = [one.led_by for one in (*first, *last) if one.result.rule.name == rule]
        return FindingChange(
            state=state,
            rule=rule,
            summary=shown.summary,
            severity=shown.result.severity.word if shown.result.severity else "",
            at=shown.result.place,
            before_ms=earlier.ms if earlier else None,
            before_kind=earlier.kind if earlier else None,
            after_ms=now.ms if now else None,
            after_kind=now.kind if now else None,
            shown_by=led_by[-1] if all(led_by) else "",
            before_run_ms=first_run.ms if first_run else None,
            after_run_ms=last_run.ms if last_run else None,
        )

    def rank(one: FindingChange) -> tuple[int, float]:  # by the run, where it saves nothing of each step
        amount = one.after_ms or one.before_ms or one.after_run_ms or one.before_run_ms or 0.0
        return [*FindingState].index(one.state), -amount

    return tuple(sorted((change(*pair) for pair in pairs), key=rank))


def _found(report: Diagnosis) -> Iterator[Found]:
    script, _ = program_of(report.subject.command)
    leads = [(one, entry.result) for entry in report.entries for one in (*entry.symptoms, *entry.same)]
    led = {one.rule.name: lead.rule.name for one, lead in leads}
    for result in report.results:
        if not (finding := result.finding):
            continue
        amount = result.saving or result.takes
        at = next((remedy.at for remedy in finding.remedies if remedy.at), None)
        path = at.path if at else ""
        names = [PurePosixPath(one.replace("\\", "/")).parts[::-1] for one in (script, path)]
        yield Found(
            result=result,
            summary=finding.summary,
            ms=amount.share * (step_of(report) or 0.0) if amount else None,
            kind="saving" if result.saving else "cost" if amount else None,
            path=path,
            line=report.lines.get(location(at), "") if at else "",
            in_script=all(names) and all(one == other for one, other in zip(*names, strict=False)),
            led_by=led.get(result.rule.name, ""),
        )


def _same(one: Found, others: Sequence[Found]) -> Found | None:
    """Return the other finding of the same rule in the same file, in the script, or at a line of the same text."""
    matching = [other for other in others if other.result.rule.name == one.result.rule.name]
    in_file = (other for other in matching if other.path == one.path)
    in_script = (other for other in matching if one.in_script and other.in_script)
    by_line = (other for other in matching if one.line and one.line == other.line)
    return next(in_file, None) or next(in_script, None) or next(by_line, None)


def _state(earlier: Found, now: Found, least_ms: float) -> FindingState:
    moved, least = float((now.result.severity or 0) - (earlier.result.severity or 0)), 0.0
    first, last = earlier.result.run, now.result.run
    if earlier.ms is not None and now.ms is not None and earlier.kind == now.kind:
        moved, least = now.ms - earlier.ms, least_ms
    elif first and last and not (earlier.kind or now.kind):
        moved, least = last.share - first.share, SMALLEST_SAVING
    if abs(moved) <= least:
        return FindingState.SAME
    return FindingState.WORSE if moved > 0 else FindingState.BETTER
