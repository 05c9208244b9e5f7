"""The parts of the step before and after, and which of them changed."""

import math

import numpy as np

from tfdoctor.compare.report_data import ReportData
from tfdoctor.compare.step_times import QUARTILES, Floats, bootstrap_error
from tfdoctor.comparison import PartChange
from tfdoctor.diagnosis import PARTS
from tfdoctor.student_t import student

SMALLEST = 0.01
"""Share of the step by which a part must change, however even the steps are."""

FEWEST_STEADY = 4
"""Steady steps below which no part is called changed."""


def part_changes(before: ReportData, after: ReportData, *, in_ms: bool) -> tuple[PartChange, ...]:
    """Return the parts that either run has, in display order; in ms, or in shares of the step."""
    if not before.parts_ms or not after.parts_ms:
        return ()
    shown = [part for part in PARTS if before.parts_ms.get(part) or after.parts_ms.get(part)]
    return tuple(_change(part, before, after, in_ms=in_ms) for part in shown)


def _change(part: str, before: ReportData, after: ReportData, *, in_ms: bool) -> PartChange:
    """Compare one part; a share is that of its own run's step."""
    steps = [report.step_ms or 1.0 for report in (before, after)]
    first_unit, last_unit = (1.0, 1.0) if in_ms else steps
    first = before.parts_ms.get(part, 0.0) / first_unit
    last = after.parts_ms.get(part, 0.0) / last_unit
    half = math.hypot(_half_ms(before, part) / first_unit, _half_ms(after, part) / last_unit)
    least = SMALLEST * (max(steps) if in_ms else 1.0)
    return PartChange(
        part=part, before=first, after=last, changed=abs(last - first) > max(half, least)
    )


def _half_ms(report: ReportData, part: str) -> float:
    """Return half of the 95 % interval of a part, ms: by the sample of steps, and by how much they differ."""
    steady = [row for row in report.steps.rows if row.typical]
    times: Floats = np.array([row.parts_ms.get(part, 0.0) for row in steady])
    if len(times) < FEWEST_STEADY:
        return math.inf
    error = bootstrap_error(times, lambda drawn: drawn.mean(axis=1))
    low, high = np.percentile(times, (25, 75))
    return student(len(times) - 1) * math.hypot(error, float(high - low) / QUARTILES)
