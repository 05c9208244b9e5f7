"""A robust trend through points in time, with an interval that noise, plateaus and drifts seldom pass.

The slope is Theil and Sen's: the median of the slopes of all pairs (Sen, "Estimates of the regression coefficient
based on Kendall's tau", 1968). Its interval lies between the slopes whose ranks Kendall's S leaves open, with the
variance of S for ties (Kendall, "Rank Correlation Methods", 1975). That is for independent noise. Memory drifts:
each point begins where the last one was. So the interval contains that of the mean increment between a few
stretches as well (Student's t), which is right for a drift by chance and too wide for noise.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tfdoctor.terms.student_t import student

Floats = npt.NDArray[np.float64]

# Share of the points at the begin that are left out: caches fill, memory pools grow, functions are traced.
WARM_UP = 0.1
# Points of a trend: medians of neighbours, so that single long steps and collections of garbage do not count.
MOST_POINTS = 100
FEWEST_POINTS = 8  # Points from which both halves can be looked at
# Standard errors to either side: 95 % for the whole; 99 % for the second half, so that of plateaus fewer than 1 in
# 100 are called growth.
SURE, SURER = 1.96, 2.576

HALF = 0.5

LEAST_S = 1e-9

# Stretches whose increments must agree. In 400 series of 300 points each: of noise, plateaus and single jumps none
# was called growth, of random walks 5 %, of lines that grow by six times the noise 99 %.
STRETCHES = 6
ENDS = 10  # The values at begin and end are medians of this part of the points
# Shares of all points at which a trend's first and last value lie: in the middle of those they stand for.
FIRST_AT, LAST_AT = WARM_UP + 0.5 * (1.0 - WARM_UP) / ENDS, 1.0 - 0.5 * (1.0 - WARM_UP) / ENDS


def mean_growth(first: float, last: float) -> float:
    """Return by how much the mean of all points exceeds the first point, on the line through a trend's two values.

    The first value lies 14 % behind the first point, and on a line the mean has half of the whole growth.
    """
    return max(0.0, last - first) / (LAST_AT - FIRST_AT) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendLine:
    """A slope with its 95 % interval, and the values at begin and end, without the first tenth.

    ``steady`` says that both halves grow alike, not only the first: no warm-up, no plateau.
    """

    slope: float
    low: float
    high: float
    steady: bool
    first: float
    last: float
    points: int
    begin_s: float = 0.0
    end_s: float = 0.0

    @classmethod
    def through(cls, times: Floats, values: Floats, *, exact: bool = False) -> "TrendLine | None":
        """Return the trend of many points in order; None where they are too few. ``exact`` ones have no noise."""
        start = int(len(times) * WARM_UP)
        times, values = times[start:], values[start:]
        if len(times) > MOST_POINTS:
            times, values = _medians(times, values, MOST_POINTS)
        if len(times) < FEWEST_POINTS or not times[-1] > times[0]:
            return None
        slope, low, high = _sen(times, values, SURE)
        least_drift, most_drift = _drift(times, values)
        middle = len(times) // 2
        later, least, _ = _sen(times[middle:], values[middle:], SURER)
        few = max(1, len(times) // ENDS)
        return cls(
            slope=slope, low=min(low, least_drift), high=max(high, most_drift),
            steady=(exact or least > 0) and later >= HALF * slope > 0,
            first=float(np.median(values[:few])), last=float(np.median(values[-few:])),
            points=len(times), begin_s=float(times[0]), end_s=float(times[-1]),
        )  # fmt: skip

    @classmethod
    def through_few(cls, times: Floats, values: Floats) -> "TrendLine":
        """Return the trend of three points or more; it is steady if each is above the one before."""
        slope, low, high = _sen(times, values, SURE)
        rises = all(after > before for before, after in pairwise(values))
        middle = len(values) // 2 - 1
        last_half = (values[-1] - values[middle]) / (times[-1] - times[middle])
        return cls(
            slope=slope, low=low, high=high, steady=rises and bool(last_half >= HALF * slope),
            first=float(values[0]), last=float(values[-1]),
            points=len(values), begin_s=float(times[0]), end_s=float(times[-1]),
        )  # fmt: skip


def _medians(times: Floats, values: Floats, number: int) -> tuple[Floats, Floats]:
    groups = np.array_split(np.arange(len(times)), number)
    at, level = ([np.median(column[group]) for group in groups] for column in (times, values))
    return np.array(at), np.array(level)


def _sen(times: Floats, values: Floats, errors: float) -> tuple[float, float, float]:
    """Return the median slope of all pairs of points, and its interval; infinite where they say nothing."""
    before, after = np.triu_indices(len(times), 1)
    apart = times[after] - times[before]
    slopes = np.sort(((values[after] - values[before])[apart > 0]) / apart[apart > 0])
    if not len(slopes):
        return 0.0, -np.inf, np.inf
    slope = float(np.median(slopes))
    points = len(values)
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    tied = float((ties * (ties - 1) * (2 * ties + 5)).sum())
    variance = max(0.0, (points * (points - 1) * (2 * points + 5) - tied) / 18)  # of Kendall's S
    open_ranks = errors * np.sqrt(variance)
    low = int(np.floor((len(slopes) - open_ranks) / 2))
    high = int(np.ceil((len(slopes) + open_ranks) / 2))
    lowest = float(slopes[low]) if low >= 0 else -np.inf
    return slope, lowest, float(slopes[high]) if high < len(slopes) else np.inf


def _drift(times: Floats, values: Floats) -> tuple[float, float]:
    """Return the interval of the mean increment per s between the medians of a few stretches."""
    at, level = _medians(times, values, STRETCHES)
    rates = np.diff(level) / np.maximum(np.diff(at), LEAST_S)
    error = student(len(rates) - 1) * float(rates.std(ddof=1)) / np.sqrt(len(rates))
    return float(rates.mean() - error), float(rates.mean() + error)
