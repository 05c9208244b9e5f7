"""What differs in two runs besides the whole step: its parts, operations and input stages, and the run's phases."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tfdoctor.compare.reports import Widening, step_of
from tfdoctor.compare.step_times import (
    Floats,
    Interval,
    bootstrap_error,
    quartile_spread,
    spread_of_runs,
    stretches,
)
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import ChangeOfRun, Mover, MoverKind, PartChange, PhaseChange
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.student_t import student

SMALLEST = (
    0.01  # Share of the step by which a part, an operation or a stage must change, however even the steps are
)
FEWEST_STEADY = 4  # Steady steps below which no part is called changed
# Share of the parts' change that is left of the whole step's, below which other parts make up for it.
COMPENSATED = 0.5
MOST = 20  # Movers that are kept: a comparison is read, and the reports of the two runs have all operations


def part_changes(before: Diagnosis, after: Diagnosis, widen: Widening, *, in_ms: bool) -> tuple[PartChange, ...]:
    """Return the parts that either run has, in display order; in ms, or in shares of the step."""
    known = before.steps.shown_breakdown_ms and after.steps.shown_breakdown_ms
    parts = _parts(before, after) if known else ()
    return tuple(_part_change(part, before, after, widen, in_ms=in_ms) for part in parts)


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


def _part_change(part: str, before: Diagnosis, after: Diagnosis, widen: Widening, *, in_ms: bool) -> PartChange:
    """Compare one part; a share is that of its own run's step."""
    steps = [step_of(report) or 1.0 for report in (before, after)]
    units = (1.0, 1.0) if in_ms else steps
    (first, lower, upper), (last, lower_after, upper_after) = (
        _taken(report, part, unit) for report, unit in zip((before, after), units, strict=True)
    )
    least = SMALLEST * (max(steps) if in_ms else 1.0)
    below, above = _slack(first, last, widen) if in_ms else (0.0, 0.0)
    by = last - first - math.hypot(upper, lower_after) - below
    if last < first:
        by = first - last - math.hypot(lower, upper_after) - above
    changed = by > 0 and abs(last - first) > least
    return PartChange(part=part, before=first, after=last, changed=changed if math.isfinite(by) else None)


def _times(report: Diagnosis, part: str) -> Floats:
    """Return what the part took of each steady step, ms."""
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
    for kind in MoverKind:
        first, last = (_by_name(report, kind, 1.0 if in_ms else step_of(report)) for report in (before, after))
        known = first and last  # otherwise one of the runs does not know its times
        for name in dict.fromkeys([*first, *last]) if known else ():
            low, high = sorted((first.get(name, 0.0), last.get(name, 0.0)))
            ratio = math.log(high / low) if low > 0 else math.inf
            if high - low >= SMALLEST * step and ratio >= math.log1p(certain):
                mover = Mover(kind=kind, name=name, before=first.get(name), after=last.get(name))
                moved.append((low - high, name, mover))
    return tuple(mover for _, _, mover in sorted(moved, key=lambda one: one[:2])[:MOST])


def _by_name(report: Diagnosis, kind: MoverKind, unit: float | None) -> Mapping[str, float]:
    """Return the times per step; of several stages that the user wrote alike, or that have one name, their sum."""
    rows = [
        (f"{row.operation} ({row.layer})" if row.layer else row.operation, row.self_ms) for row in report.operations
    ]
    if kind is MoverKind.STAGE:
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
    times: list[dict[Phase, float]] = [defaultdict(float), defaultdict(float)]
    for run, of_phases in zip((first, last), times, strict=True):
        for row in run.rows:
            of_phases[row.phase] += row.ms if row.phase is not Phase.PROFILER else 0.0
    phases = [phase for phase in Phase if phase is not Phase.PROFILER and any(phase in known for known in times)]
    return ChangeOfRun(
        before_ms=sum(times[0].values()),
        after_ms=sum(times[1].values()),
        phases=tuple(
            PhaseChange(phase=phase, before_ms=times[0][phase], after_ms=times[1][phase]) for phase in phases
        ),
        epochs=(first.epochs, last.epochs),
        steps=(first.steps, last.steps),
        ended_early=first.ended_early or last.ended_early,
    )
