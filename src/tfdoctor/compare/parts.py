"""The parts of the step before and after, which of them changed, and what that says of the whole step."""

import math
from collections.abc import Sequence

import numpy as np

from tfdoctor.compare.conditions import Widening
from tfdoctor.compare.interval import Interval
from tfdoctor.compare.reports import parts_of, step_of
from tfdoctor.compare.step_times import QUARTILES, Floats, bootstrap_error, spread_of_runs, stretches
from tfdoctor.diagnosis import PARTS, Diagnosis
from tfdoctor.diagnosis.comparison import PartChange
from tfdoctor.terms.student_t import student

SMALLEST = 0.01  # Share of the step by which a part must change, however even the steps are
FEWEST_STEADY = 4  # Steady steps below which no part is called changed
# Share of the parts' change that is left of the whole step's, below which other parts make up for it.
COMPENSATED = 0.5


def part_changes(before: Diagnosis, after: Diagnosis, widen: Widening, *, in_ms: bool) -> tuple[PartChange, ...]:
    """Return the parts that either run has, in display order; in ms, or in shares of the step."""
    if not parts_of(before) or not parts_of(after):
        return ()
    shown = [part for part in PARTS if parts_of(before).get(part) or parts_of(after).get(part)]
    return tuple(_change(part, before, after, widen, in_ms=in_ms) for part in shown)


def carried(parts: Sequence[PartChange]) -> float:
    """Return the change of the step by the parts that changed, ms; 0 where other parts make up for it."""
    changes = [part.after - part.before for part in parts if part.changed]
    by_parts, whole = sum(changes), sum(part.after - part.before for part in parts)
    largest = max(map(abs, changes), default=0.0)
    stands = by_parts * whole >= COMPENSATED * by_parts**2 and abs(by_parts) >= COMPENSATED * largest
    return by_parts if stands else 0.0


def step_by_parts(before: Diagnosis, after: Diagnosis, widen: Widening) -> Interval:
    """Return the change of the step as the sum of its parts, relative to the step before."""
    parts = [part for part in PARTS if parts_of(before).get(part) or parts_of(after).get(part)]
    half = math.hypot(*(_half_ms(_times(report, part)) for report in (before, after) for part in parts))
    first, last = (sum(parts_of(report).values()) for report in (before, after))
    below, above = _slack(first, last, widen)
    return Interval(last / first - 1, (last - first - half - below) / first, (last - first + half + above) / first)


def _slack(before: float, after: float, widen: Widening) -> tuple[float, float]:
    """Return by how much a change may be smaller and larger, because of the conditions of the runs."""
    return after * -math.expm1(-widen.below), before * -math.expm1(-widen.above)


def _change(part: str, before: Diagnosis, after: Diagnosis, widen: Widening, *, in_ms: bool) -> PartChange:
    """Compare one part; a share is that of its own run's step."""
    steps = [step_of(report) or 1.0 for report in (before, after)]
    first_unit, last_unit = (1.0, 1.0) if in_ms else steps
    first = parts_of(before).get(part, 0.0) / first_unit
    last = parts_of(after).get(part, 0.0) / last_unit
    least = SMALLEST * (max(steps) if in_ms else 1.0)
    below, above = _slack(first, last, widen) if in_ms else (0.0, 0.0)
    (lower, upper), (lower_after, upper_after) = (
        (down / unit, up / unit)
        for report, unit in ((before, first_unit), (after, last_unit))
        for down, up in [_reach_ms(_times(report, part))]
    )
    by = last - first - math.hypot(upper, lower_after) - below
    if last < first:
        by = first - last - math.hypot(lower, upper_after) - above
    known = math.isfinite(by)
    changed = by > 0 and abs(last - first) > least
    return PartChange(part=part, before=first, after=last, changed=changed if known else None)


def _times(report: Diagnosis, part: str) -> Floats:
    """Return what the part took of each steady step, ms."""
    rows = [row for row in report.steps.rows if row.steady]
    return np.array([row.parts_ms.get(part, 0.0) for row in rows])


def _reach_ms(times: Floats) -> tuple[float, float]:
    """Return how far below and above its mean a part may be, ms: not beyond what it took of any step.

    The step itself has the same bound, so that a step which clearly changed has a part that did.
    """
    half = _half_ms(times)
    if math.isinf(half):
        return half, half
    mean = float(times.mean())
    return min(half, mean - float(times.min())), min(half, float(times.max()) - mean)


def _half_ms(times: Floats) -> float:
    """Return half of the 95 % interval of a part, ms: by the sample, and by how much steps and runs differ."""
    if len(times) < FEWEST_STEADY:
        return math.inf
    error = bootstrap_error(times, lambda drawn: drawn.mean(axis=1))
    low, high = np.percentile(times, (25, 75))
    spread = max(float(high - low) / QUARTILES, spread_of_runs(stretches(times, np.median)))
    return student(len(times) - 1) * math.hypot(error, spread)
