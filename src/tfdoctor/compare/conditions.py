"""How the conditions of two runs widen the interval of their difference: load of other programs, and GPU clocks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfdoctor.compare.report_data import ReportData
from tfdoctor.diagnosis import Conditions
from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.humanize import percent

NOTICED = 0.01
"""Share by which conditions must widen the interval to be named."""


@dataclass(frozen=True, slots=True)
class Widening:
    """By how much the ends of the interval move apart, in logarithms of ratios, and why."""

    below: float = 0.0
    above: float = 0.0
    why: tuple[str, ...] = ()


def widening(before: Sequence[ReportData], after: Sequence[ReportData]) -> Widening:
    """Return what the conditions may have changed.

    Other programs that used a share s of crowded cores may have made a run up to 1 / (1 - s) times as long. A lower
    clock may have made it longer by the ratio of the clocks.
    """
    slowed_before, slowed_after = _slowed(before), _slowed(after)
    clock = _clock(before, after)
    return Widening(
        below=slowed_after + max(0.0, clock),
        above=slowed_before + max(0.0, -clock),
        why=tuple(
            filter(
                None, (_load("before", slowed_before), _load("after", slowed_after), _clocks(clock))
            )
        ),
    )


def _slowed(reports: Sequence[ReportData]) -> float:
    """Return by how much other programs slowed the runs at most, as a logarithm; their mean."""
    return float(np.mean([-np.log1p(-taken(report.conditions)) for report in reports]))


def taken(conditions: Conditions) -> float:
    """Return the share of the cores that other programs took while there were none to spare."""
    usable, run, other = conditions.cores_usable, conditions.cores_run, conditions.cores_other
    if not usable or run is None or other is None or run + other < CROWDED * usable:
        return 0.0
    return min(other / usable, 0.9)


def _clock(before: Sequence[ReportData], after: Sequence[ReportData]) -> float:
    """Return the logarithm of the GPUs' clock before over that after; 0 where one is unknown."""
    clocks = [[one.conditions.gpu_mhz for one in side] for side in (before, after)]
    if not all(mhz for side in clocks for mhz in side):
        return 0.0
    first, last = (float(np.mean([np.log(mhz or 1.0) for mhz in side])) for side in clocks)
    return first - last


def _load(which: str, slowed: float) -> str:
    if slowed < NOTICED:
        return ""
    share = percent(float(-np.expm1(-slowed)))
    return (
        f"Other programs used {share} of the cores while the steps {which} the change were traced."
    )


def _clocks(clock: float) -> str:
    if abs(clock) < NOTICED:
        return ""
    which = "lower" if clock > 0 else "higher"
    return f"The clock of the GPUs was {percent(float(np.expm1(abs(clock))))} {which} after the change."
