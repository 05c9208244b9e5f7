"""The step of a run and how uncertain it is.

Two things make it uncertain. The traced steps are a sample: their part is found by a circular block bootstrap, as
steps are not independent and a slow one is often followed by another. Blocks are n^(1/3) steps long (Hall, Horowitz
and Jing, Biometrika 82, 1995), and the degrees of freedom are the number of blocks less one. And runs of
the same program differ, because of memory layout, the cores they run on and other load. One recording does not
show by how much; it is taken to be as much as the stretches of its own traced steps differ, which show the slow
changes of a machine and hardly those from step to step (benchmarks/regression.py tests it). But a run
is no slower than its slowest stretch, and no faster than its fastest: this bounds what a burst of slow steps makes
of the spread, and steps that do not overlap with those of another run show a difference.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Self

import numpy as np
import numpy.typing as npt

from tfdoctor.diagnosis.comparison import StepFigure
from tfdoctor.terms.record import Record

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000  # Of the bootstrap: its standard error is then within 2 % of that of endless resampling
FEWEST = 8  # Steps below which there is no interval: the blocks would be fewer than four
SEED = 0  # Of the resampling: the same two reports give the same comparison
# Relative standard deviation of runs below which none is assumed, however even the steps are: as `tfdoctor try`
# claims no smaller difference.
LEAST_SPREAD = 0.005
QUARTILES = 1.349  # Interquartile range of a normal distribution, in standard deviations: long steps do not count
# Spread of runs for one of the stretches: with it, fewer than one in a hundred pairs of recordings of unchanged
# scripts failed a gate of 5 % on a shared machine (benchmarks/regression.py).
RUNS = 1.25
STRETCHES = 6  # Parts of the traced steps whose medians are compared: of 60 steps each has 10


def _of_stretches(series: Floats) -> Floats:
    """Return the median over the stretches of a series of the stretch's mean, for each row."""
    parts = np.array_split(series, min(STRETCHES, series.shape[1]), axis=1)
    return np.asarray(np.median([part.mean(axis=1) for part in parts], axis=0))


# How a figure is made of series of steps, one in each row.
FIGURES: Mapping[StepFigure, Callable[[Floats], Floats]] = MappingProxyType(
    {
        StepFigure.TYPICAL: lambda series: np.asarray(np.median(series, axis=1)),
        StepFigure.MEAN: lambda series: np.asarray(np.mean(series, axis=1)),
        StepFigure.STRETCHES: _of_stretches,
    }
)


class ComparedSteps(Record, eq=False, dict=True):
    """The traced steps of one run, in order, and the step that its report is about; ms."""

    times_ms: Floats  # of the steps that the figure is made of
    step_ms: float  # as the report states it
    figure: StepFigure = StepFigure.TYPICAL  # what the step is of the times
    untraced_ms: float | None = None  # median step outside of the traced window

    @property
    def traced_ms(self) -> float:
        """The step as it was traced."""
        return float(FIGURES[self.figure](self.times_ms[None])[0])

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
        low, high = np.percentile(self._resampled, (25, 75))
        noise = quantile * float(high - low) / QUARTILES
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
        every, typical = (
            float(FIGURES[figure](self.times_ms[None])[0]) for figure in (StepFigure.STRETCHES, self.figure)
        )
        step_ms = self.step_ms * every / typical
        return replace(self, step_ms=step_ms, figure=StepFigure.STRETCHES, untraced_ms=None)

    @cached_property
    def _resampled(self) -> Floats:
        """The logarithm of the step in resamples of the times."""
        of = FIGURES[self.figure]
        return resampled(self.times_ms, lambda drawn: np.log(of(drawn)))


def stretches(values: Floats, statistic: Callable[[Floats], np.floating]) -> Floats:
    """Return a statistic of each stretch of a series."""
    parts = np.array_split(values, min(STRETCHES, len(values)))
    return np.array([float(statistic(part)) for part in parts])


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
