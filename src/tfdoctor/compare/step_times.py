"""The step of a run and how uncertain it is.

Two things make it uncertain. The traced steps are a sample: their part is found by a circular block bootstrap, as
steps are not independent and a slow one is often followed by another. Blocks are n^(1/3) steps long (Hall, Horowitz
and Jing, Biometrika 82, 1995), and the degrees of freedom are the number of blocks less one. And runs of
the same program differ, because of memory layout, the cores they run on and other load. One recording does not
show by how much; it is taken to be as much as the stretches of its own traced steps differ, which show the slow
changes of a machine and hardly those from step to step (benchmarks/regression.py tests it).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
"""Of the bootstrap: its standard error is then within 2 % of that of endless resampling."""

FEWEST = 8
"""Steps below which there is no interval: the blocks would be fewer than four."""

SEED = 0
"""Of the resampling: the same two reports give the same comparison."""

LEAST_SPREAD = 0.005
"""Relative standard deviation of runs below which none is assumed, however even the steps are: as `tfdoctor try`
claims no smaller difference."""

QUARTILES = 1.349
"""Interquartile range of a normal distribution, in standard deviations: long steps do not count."""

RUNS = 1.25
"""Spread of runs for one of the stretches: with it, fewer than one in a hundred pairs of recordings of unchanged
scripts failed a gate of 5 % on a shared machine (benchmarks/regression.py)."""

STRETCHES = 6
"""Parts of the traced steps whose medians are compared: of 60 steps each has 10."""


@dataclass(frozen=True, eq=False)
class RunSteps:
    """The traced steps of one run, in order, and the step that its report is about; ms."""

    times_ms: Floats  # of the steps that the figure is made of
    step_ms: float  # as the report states it
    mean: bool = False  # the figure is the mean of the steps; otherwise the median
    untraced_ms: float | None = None  # median step outside of the traced window

    @cached_property
    def error(self) -> float:
        """The standard error of the logarithm of the step, by the sample of steps alone."""
        of = np.mean if self.mean else np.median
        return bootstrap_error(self.times_ms, lambda drawn: np.log(of(drawn, axis=1)))

    @property
    def freedom(self) -> float:
        """The degrees of freedom of that error."""
        return len(self.times_ms) / block_length(len(self.times_ms)) - 1

    @property
    def spread(self) -> float:
        """The relative standard deviation that is taken for that of runs: of the stretches' medians."""
        stretches = np.array_split(self.times_ms, min(STRETCHES, len(self.times_ms)))
        medians = np.array([np.median(stretch) for stretch in stretches])
        return max(LEAST_SPREAD, RUNS * float(np.std(np.log(medians), ddof=1)))


def block_length(count: int) -> int:
    """Return how many consecutive steps make a block."""
    return max(1, int(np.cbrt(count) + 0.5))


def bootstrap_error(values: Floats, statistic: Callable[[Floats], Floats]) -> float:
    """Return the standard error of a statistic of a series.

    ``values`` has a row for each step; ``statistic`` takes resampled series (resamples x steps x ...) and returns
    a value for each.
    """
    count = len(values)
    block = block_length(count)
    blocks = -(-count // block)
    starts = np.random.default_rng(SEED).integers(count, size=(RESAMPLES, blocks))
    rows = (starts[:, :, None] + np.arange(block)) % count
    drawn = values[rows.reshape(RESAMPLES, blocks * block)[:, :count]]
    return float(np.std(statistic(drawn), ddof=1) * np.sqrt(blocks / (blocks - 1)))
