"""Where the level of a series changes: between which two runs, and whether chance explains it.

For each place that a series can be divided at, the ranks of the runs on both sides are compared by the statistic of
Mann and Whitney, standardized. There is a change if shuffled runs rarely reach the largest of these (Hawkins and
Deng, "A nonparametric change-point control chart", Journal of Quality Technology 42(2), 2010). A level that returns
to the former one shows less by that than by comparing the runs between two places with all others (circular binary
segmentation: Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5(4), 2004), so that is tried where the first
finds nothing. A change lies where both sides are nearest to their medians. Each part is then treated in the same
way. Ranks and medians make one slow run count as one run, however slow it was.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from tfdoctor.compare.step_times import Floats

# Share of shuffled series in which each of the two comparisons exceeds its limit: together two in a hundred at
# most.
FALSE_ALARMS = 0.01

# The largest statistic of a place that a share FALSE_ALARMS of shuffled series exceeds, by the number of runs: of
# 100,000 series (24,000 from 150 runs on). With fewer than 10 runs no order of them is rare enough.
DIVIDED: Mapping[int, float] = {
    10: 2.559, 11: 2.646, 12: 2.718, 13: 2.778, 14: 2.829, 15: 2.873, 16: 2.889, 18: 2.944, 20: 2.97, 25: 3.055,
    30: 3.124, 40: 3.213, 50: 3.25, 75: 3.352, 100: 3.421, 150: 3.473, 200: 3.525, 300: 3.594, 500: 3.623,
}  # fmt: skip

# The same of two places: of 100,000 series (20,000 from 75 runs on, 4,000 from 300).
BETWEEN: Mapping[int, float] = {
    14: 3.099, 15: 3.126, 16: 3.146, 18: 3.224, 20: 3.319, 25: 3.451, 30: 3.557, 40: 3.687, 50: 3.783, 75: 3.94,
    100: 4.034, 150: 4.181, 200: 4.216, 300: 4.333, 500: 4.414,
}  # fmt: skip

FEWEST = min(DIVIDED)  # Runs below which no change of the level can be told from chance
LEVEL = 3  # Runs that a level has at least: one or two slow runs are no level
LEAST = 0.01  # Relative change of the median below which a change point is not marked: no user acts on less


def change_points(values: Floats) -> tuple[int, ...]:
    """Return the places of the first run of each new level of positive values, in order; () for too few."""
    if len(values) < FEWEST:
        return ()
    logs = np.log(values)
    found = sorted(_within(logs))
    bounds = (0, *found, len(values))
    medians = [float(np.median(logs[start:end])) for start, end in pairwise(bounds)]
    levels = zip(found, medians, medians[1:], strict=False)
    return tuple(at for at, before, after in levels if abs(after - before) >= LEAST)


def _within(logs: Floats) -> list[int]:
    """Return the changes of a series, and those of the parts between them."""
    inner = _found(logs)
    parts = pairwise((0, *inner, len(logs))) if inner else ()
    return [*inner, *(begin + at for begin, end in parts for at in _within(logs[begin:end]))]


def _found(logs: Floats) -> tuple[int, ...]:
    """Return the place at which a series is divided, or the two that a level lies between; () without a change."""
    if len(logs) < FEWEST:
        return ()
    sums = np.concatenate([[0.0], np.cumsum(ranks(logs))])
    if at_one_place(sums) > limit(DIVIDED, len(logs)):
        return (_nearest(logs),)
    if len(logs) < min(BETWEEN):
        return ()
    largest, first, end = at_two_places(sums)
    if largest <= limit(BETWEEN, len(logs)):
        return ()
    if first < LEVEL or len(logs) - end < LEVEL or end - first < LEVEL:
        return (_nearest(logs),)
    first = _nearest(logs[:end])
    return first, first + _nearest(logs[first:])


def limit(of: Mapping[int, float], count: int) -> float:
    """Return the limit for a number of runs, between two that are known by their logarithms."""
    return float(np.interp(np.log(count), np.log([*of]), [*of.values()]))


def ranks(values: Floats) -> Floats:
    """Return the ranks from 1; equal values have the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[places], dtype=np.float64)


def at_one_place(sums: Floats) -> float:
    """Return the largest statistic of a place, by the sums of the first ranks, from none to all."""
    expected, deviations = _by_chance(len(sums) - 1)
    return float((np.abs(sums[1:-1] - expected) / deviations).max())


def at_two_places(sums: Floats) -> tuple[float, int, int]:
    """Return the largest statistic of two places, and these: of the runs from the first to before the second."""
    count = len(sums) - 1
    found = (0.0, 0, count)
    for length, (expected, deviation) in enumerate(zip(*_by_chance(count), strict=True), start=1):
        apart = np.abs(sums[length:] - sums[:-length] - expected)
        start = int(apart.argmax())
        found = max(found, (float(apart[start] / deviation), start, start + length))
    return found


def _by_chance(count: int) -> tuple[Floats, Floats]:
    """Return the expected sums of one, two, … of so many ranks, not of all, and their standard deviations."""
    lengths = np.arange(1, count)
    return lengths * (count + 1) / 2, np.sqrt(lengths * (count - lengths) * (count + 1) / 12)


def _nearest(logs: Floats) -> int:
    """Return where a series is divided so that both sides are nearest to their medians."""

    def distance(side: Floats) -> float:
        half, ordered = len(side) // 2, np.sort(side)  # the median lies between the halves
        return float(ordered[-half:].sum() - ordered[:half].sum())

    places = range(LEVEL, len(logs) - LEVEL + 1)
    return min(places, key=lambda at: distance(logs[:at]) + distance(logs[at:]))
