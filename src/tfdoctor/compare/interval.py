"""The interval of the difference between two runs, in logarithms of ratios: 0.1 is about 10 % slower."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from tfdoctor.compare.step_times import LEAST_SPREAD, STRETCHES, ComparedSteps
from tfdoctor.diagnosis.comparison import StepFigure
from tfdoctor.facts.steps.untraced_pace import DISTORTED
from tfdoctor.terms.record import Record
from tfdoctor.terms.student_t import student

Runs = Sequence[ComparedSteps]

# Relative change beyond the interval of the typical step from which long steps count: a fault that takes such a
# share of the step is a finding.
LONG_STEPS = 0.05


class Interval(Record):
    """A figure and the 95 % interval around it."""

    middle: float
    low: float
    high: float

    def wider(self, below: float, above: float) -> Self:
        """Return the interval, moved apart at its ends by these amounts."""
        return type(self)(self.middle, self.low - below, self.high + above)

    def holding(self, value: float) -> Self:
        """Return the interval, as wide as is needed to hold a value."""
        return type(self)(self.middle, min(self.low, value), max(self.high, value))

    def within(self, other: Self) -> Self:
        """Return what both hold, around the same figure; all of both where they have nothing in common."""
        if self.apart(other):
            return type(self)(self.middle, min(self.low, other.low), max(self.high, other.high))
        low, high = max(self.low, other.low), min(self.high, other.high)
        return type(self)(self.middle, min(low, self.middle), max(high, self.middle))

    def apart(self, other: Self) -> bool:
        """Whether two intervals have nothing in common."""
        return self.low > other.high or self.high < other.low

    def outside(self, value: float) -> float:
        """Return by how much a value is outside of the interval; not above 0 where it is inside."""
        return max(self.low - value, value - self.high)

    @property
    def excludes_zero(self) -> bool:
        """Whether there is a difference."""
        return self.low > 0 or self.high < 0

    def ratios(self) -> Self:
        """Return the same as changes relative to the time before: 0.1 is 10 % slower."""
        return type(self)(*(float(np.expm1(end)) for end in (self.middle, self.low, self.high)))


def change(before: Runs, after: Runs) -> tuple[StepFigure, Interval]:
    """Return the interval of the step's change, and which figure of the steps it is about.

    The typical step does not see what some steps do, such as a checkpoint after every fifth. So all steps are
    compared too, by the means of stretches. They count where the two intervals have nothing in common, and where
    the typical step shows no difference, but the figure of all steps is clearly outside of its interval.
    """
    figure, typical = before[0].figure, step_interval(before, after)
    if any(run.figure is not StepFigure.TYPICAL for run in (*before, *after)):
        return figure, typical
    stretched = [[run.by_stretches() for run in runs] for runs in (before, after)]
    beyond = typical.outside(_log(stretched[1]) - _log(stretched[0]))
    if beyond <= 0:
        return figure, typical
    every = step_interval(*stretched)
    hidden = not typical.excludes_zero and beyond > LONG_STEPS
    return (StepFigure.STRETCHES, every) if hidden or every.apart(typical) else (figure, typical)


def step_interval(before: Runs, after: Runs) -> Interval:
    """Return the logarithm of the step after over that before, by one or several runs of each.

    The steps outside of the traced windows are a second measurement, without the profiler's cost, but of few steps
    or of another part of the training: where they are known of all runs, the interval holds their difference too,
    and that of the steps as they were traced, unless tracing distorts them.
    Where the step of one of two runs is a mean, since long steps belong to it, the interval holds the difference of
    the medians too: how many long steps lie in a window is chance.
    """
    middle = _log(after) - _log(before)
    if _single(before, after):
        below, above = _halves_of_one(before[0], after[0])
    else:
        below = above = _half(before, after)
    whole = Interval(middle, middle - below, middle + above)
    for other in (_untraced(before, after), _traced(before, after), _medians(before, after)):
        whole = whole if other is None else whole.holding(other)
    return whole


def _single(before: Runs, after: Runs) -> bool:
    return len(before) == len(after) == 1


def _log(runs: Runs) -> float:
    return float(np.mean([np.log(run.step_ms) for run in runs]))


def _halves_of_one(before: ComparedSteps, after: ComparedSteps) -> tuple[float, float]:
    """Return both halves of the interval of two runs, whose own steps say how much runs may differ."""
    variance = sum(run.error**2 + run.spread**2 for run in (before, after))
    quantile = student(min(before.freedom, after.freedom, 2 * (STRETCHES - 1)))
    half, least = quantile * float(np.sqrt(variance)), quantile * LEAST_SPREAD * float(np.sqrt(2))
    (fast_before, slow_before), (fast_after, slow_after) = (before.reach(quantile), after.reach(quantile))
    return min(half, fast_after + slow_before + least), min(half, slow_after + fast_before + least)


def _half(before: Runs, after: Runs) -> float:
    """Return half of the interval by how much the runs of each side differ, at least by their samples of steps."""
    sides = [np.log([run.step_ms for run in runs]) for runs in (before, after)]
    freedom = sum(len(side) - 1 for side in sides)
    variance = sum(float(np.sum((side - side.mean()) ** 2)) for side in sides) / freedom
    between = variance * sum(1 / len(side) for side in sides)
    within = sum(run.error**2 / len(runs) ** 2 for runs in (before, after) for run in runs)
    return student(freedom) * float(np.sqrt(max(between, within)))


def _untraced(before: Runs, after: Runs) -> float | None:
    """Return the difference of the steps outside of the traced windows; None where one is unknown."""
    sides = [[run.untraced_ms for run in runs if run.untraced_ms] for runs in (before, after)]
    if any(len(known) < len(runs) for known, runs in zip(sides, (before, after), strict=True)):
        return None
    return float(np.mean(np.log(sides[1])) - np.mean(np.log(sides[0])))


def _traced(before: Runs, after: Runs) -> float | None:
    """Return the difference of the steps as they were traced; None where tracing distorts one of them."""
    if any(run.traced_ms > DISTORTED * run.step_ms for run in (*before, *after)):
        return None
    sides = [[np.log(run.traced_ms) for run in runs] for runs in (before, after)]
    return float(np.mean(sides[1]) - np.mean(sides[0]))


def _medians(before: Runs, after: Runs) -> float | None:
    """Return the difference of the medians of two runs; None where the steps are those, or there are more runs."""
    if not _single(before, after) or StepFigure.MEAN not in (before[0].figure, after[0].figure):
        return None
    first, last = (float(np.log(np.median(runs[0].times_ms))) for runs in (before, after))
    return last - first
