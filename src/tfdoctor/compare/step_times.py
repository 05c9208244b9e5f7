"""The step of a run and how uncertain it is, and the interval of the difference between two runs.

Two things make it uncertain. The traced steps are a sample: their part is found by a circular block bootstrap, as
steps are not independent and a slow one is often followed by another. Blocks are n^(1/3) steps long (Hall, Horowitz
and Jing, Biometrika 82, 1995), and the degrees of freedom are the number of blocks less one. And runs of
the same program differ, because of memory layout, the cores they run on and other load. One recording does not
show by how much; it is taken to be as much as the stretches of its own traced steps differ, which show the slow
changes of a machine and hardly those from step to step (benchmarks/regression.py tests it). But a run
is no slower than its slowest stretch, and no faster than its fastest: this bounds what a burst of slow steps makes
of the spread, and steps that do not overlap with those of another run show a difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import StepFigure
from tfdoctor.facts.steps.untraced_pace import DISTORTED
from tfdoctor.terms.record import Record
from tfdoctor.terms.student_t import student

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000  # Of the bootstrap: its standard error is then within 2 % of that of endless resampling
FEWEST = 8  # Steps below which there is no interval: the blocks would be fewer than four
SEED = 0  # Of the resampling: the same two reports give the same comparison
# Relative standard deviation of runs below which none is assumed, however even the steps are: as `tfdoctor try`
# claims no smaller difference.
LEAST_SPREAD = 0.005
QUARTILES = 1.349  # Interquartile range of a normal distribution, in standard deviations
# Spread of runs for one of the stretches: with it, fewer than one in a hundred pairs of recordings of unchanged
# scripts failed a gate of 5 % on a shared machine (benchmarks/regression.py).
RUNS = 1.25
STRETCHES = 6  # Parts of the traced steps whose medians are compared: of 60 steps each has 10
# Relative change beyond the interval of the typical step from which long steps count: a fault that takes such a
# share of the step is a finding.
LONG_STEPS = 0.05


def _figure(kind: StepFigure, series: Floats) -> Floats:
    if kind is StepFigure.STRETCHES:
        parts = np.array_split(series, min(STRETCHES, series.shape[1]), axis=1)
        return np.asarray(np.median([part.mean(axis=1) for part in parts], axis=0))
    return np.asarray(np.mean(series, axis=1) if kind is StepFigure.MEAN else np.median(series, axis=1))


class ComparedSteps(Record, eq=False, dict=True):
    """The traced steps of one run, in order, and the step that its report is about; ms."""

    times_ms: Floats  # of the steps that the figure is made of
    step_ms: float  # as the report states it
    figure: StepFigure = StepFigure.TYPICAL  # what the step is of the times
    untraced_ms: float | None = None  # median step outside of the traced window

    @classmethod
    def of(cls, report: Diagnosis) -> Self:
        """Return the steps that the figure of a report is made of: all of them, or the steady ones of a mean."""
        steps, mean = report.steps, bool(report.steps.stalled)
        rows = [row for row in steps.rows if row.steady or not mean] or steps.rows
        figure = StepFigure.MEAN if mean else StepFigure.TYPICAL
        times = np.array([row.total_ms for row in rows])
        return cls(times, steps.shown_ms or 0.0, figure, report.conditions.untraced_ms)

    @property
    def traced_ms(self) -> float:
        """The step as it was traced."""
        return float(_figure(self.figure, self.times_ms[None])[0])

    @cached_property
    def error(self) -> float:
        """The standard error of the logarithm of the step, by the sample of steps alone."""
        return float(np.std(self._resampled, ddof=1))

    @property
    def freedom(self) -> float:
        """The degrees of freedom of that error."""
        return len(self.times_ms) / block_length(len(self.times_ms)) - 1

    @property
    def spread(self) -> float:
        """The relative standard deviation that is taken for that of runs: of the stretches' medians."""
        within = np.mean if self.figure is StepFigure.STRETCHES else np.median
        return max(LEAST_SPREAD, spread_of_runs(np.log(stretches(self.times_ms, within))))

    def reach(self, quantile: float) -> tuple[float, float]:
        """Return how far below and above its step the run can be, as logarithms.

        Not beyond its stretches, whose ends are as uncertain as the step by the quartiles of its resamples: a burst
        of slow steps, which some resamples hold several times, is in a stretch already. And not beyond its steps.
        """
        within = np.median if self.figure is StepFigure.TYPICAL else np.mean
        of_stretches = np.log(stretches(self.times_ms, within))
        level = float(np.log(self.traced_ms))
        noise = quantile * quartile_spread(self._resampled)
        fastest, slowest = np.log(self.times_ms.min()), np.log(self.times_ms.max())
        below = level - max(float(of_stretches.min()) - noise, float(fastest))
        above = min(float(of_stretches.max()) + noise, float(slowest)) - level
        return max(0.0, below), max(0.0, above)

    def ends(self, quantile: float) -> tuple[float, float]:
        """Return the interval of the step, ms."""
        half = quantile * float(np.hypot(self.error, self.spread))
        least = quantile * LEAST_SPREAD
        below, above = (min(half, end + least) for end in self.reach(quantile))
        return self.step_ms * float(np.exp(-below)), self.step_ms * float(np.exp(above))

    def by_stretches(self) -> Self:
        """Return the run with the step of all steps instead of the typical one."""
        every = float(_figure(StepFigure.STRETCHES, self.times_ms[None])[0])
        step_ms = self.step_ms * every / self.traced_ms
        return replace(self, step_ms=step_ms, figure=StepFigure.STRETCHES, untraced_ms=None)

    @cached_property
    def _resampled(self) -> Floats:  # the logarithm of the step
        return resampled(self.times_ms, lambda drawn: np.log(_figure(self.figure, drawn)))


def stretches(values: Floats, statistic: Callable[[Floats], np.floating]) -> Floats:
    """Return a statistic of each stretch of a series."""
    parts = np.array_split(values, min(STRETCHES, len(values)))
    return np.array([float(statistic(part)) for part in parts])


def quartile_spread(values: Floats) -> float:
    """Return the standard deviation of a normal distribution with these quartiles: long steps do not count."""
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / QUARTILES


def spread_of_runs(of_stretches: Floats) -> float:
    """Return the standard deviation that is taken for that of runs, by a figure of each stretch."""
    return RUNS * float(np.std(of_stretches, ddof=1))


def block_length(count: int) -> int:
    """Return how many consecutive steps make a block."""
    return max(1, int(np.cbrt(count) + 0.5))


def bootstrap_error(values: Floats, statistic: Callable[[Floats], Floats]) -> float:
    """Return the standard error of a statistic of a series; see `resampled`."""
    return float(np.std(resampled(values, statistic), ddof=1))


def resampled(values: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
    """Return a statistic of resamples of a series, around its mean, scaled for the number of blocks.

    ``values`` has a row for each step; ``statistic`` takes resampled series (resamples x steps x ...) and returns
    a value for each.
    """
    count = len(values)
    block = block_length(count)
    blocks = -(-count // block)
    starts = np.random.default_rng(SEED).integers(count, size=(RESAMPLES, blocks))
    rows = (starts[:, :, None] + np.arange(block)) % count
    drawn = statistic(values[rows.reshape(RESAMPLES, blocks * block)[:, :count]])
    return np.asarray((drawn - drawn.mean()) * np.sqrt(blocks / (blocks - 1)))


class Interval(Record):
    """A figure and the 95 % interval around it."""

    middle: float
    low: float
    high: float

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


Runs = Sequence[ComparedSteps]


def change(before: Runs, after: Runs) -> tuple[StepFigure, Interval]:
    """Return the interval of the step's change, and which figure of the steps it is about.

    The typical step does not see what some steps do, such as a checkpoint after every fifth. So all steps are
    compared too, by the means of stretches. They count where the two intervals have nothing in common, and where
    the typical step shows no difference, but the figure of all steps is clearly outside of its interval.
    """
    figure, typical = before[0].figure, step_interval(before, after)
    if any(run.figure is not StepFigure.TYPICAL for run in (*before, *after)):
        return figure, typical
    first, last = ([run.by_stretches() for run in runs] for runs in (before, after))
    beyond = typical.outside(_apart(first, last))
    if beyond <= 0:
        return figure, typical
    every = step_interval(first, last)
    hidden = not typical.excludes_zero and beyond > LONG_STEPS
    return (StepFigure.STRETCHES, every) if hidden or every.apart(typical) else (figure, typical)


def step_interval(before: Runs, after: Runs) -> Interval:
    """Return the logarithm of the step after over that before, by one or several runs of each.

    Of one run each, the own steps say how much runs may differ; of several, the runs do, at least by their samples
    of steps.

    The interval holds other measurements of the difference too. Those outside of the traced windows, without the
    profiler's cost, are of few steps or of another part of the training: they count where they are known of all
    runs. So do the steps as they were traced, unless tracing distorts them. Where the step of one of two runs is a
    mean, since long steps are part of it, the medians count: how many long steps lie in a window is chance.
    """
    every, middle, alone = (*before, *after), _apart(before, after), len(before) == len(after) == 1
    if alone:
        quantile = student(min(*(run.freedom for run in every), 2 * (STRETCHES - 1)))
        half = quantile * float(np.sqrt(sum(run.error**2 + run.spread**2 for run in every)))
        least = quantile * LEAST_SPREAD * float(np.sqrt(2))
        (fast_before, slow_before), (fast_after, slow_after) = (run.reach(quantile) for run in every)
        below, above = min(half, fast_after + slow_before + least), min(half, slow_after + fast_before + least)
    else:
        sides = [np.log([run.step_ms for run in runs]) for runs in (before, after)]
        freedom = sum(len(side) - 1 for side in sides)
        variance = sum(float(np.sum((side - side.mean()) ** 2)) for side in sides) / freedom
        between = variance * sum(1 / len(side) for side in sides)
        within = sum(run.error**2 / len(runs) ** 2 for runs in (before, after) for run in runs)
        below = above = student(freedom) * float(np.sqrt(max(between, within)))
    held = [middle - below, middle + above]
    if all(run.untraced_ms for run in every):
        held.append(_apart(before, after, attrgetter("untraced_ms")))
    if all(run.traced_ms <= DISTORTED * run.step_ms for run in every):
        held.append(_apart(before, after, attrgetter("traced_ms")))
    if alone and any(run.figure is StepFigure.MEAN for run in every):
        held.append(_apart(before, after, lambda run: np.median(run.times_ms)))
    return Interval(middle, min(held), max(held))


def _apart(before: Runs, after: Runs, of: Callable[..., Any] = attrgetter("step_ms")) -> float:
    """Return the logarithm of a figure after over that before, by the means of the runs."""
    first, last = (float(np.mean([np.log(of(run)) for run in runs])) for runs in (before, after))
    return last - first
