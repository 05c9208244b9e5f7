"""Which events lie in which: of all threads at once, because a trace may have thousands of short ones."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Positions of events, thread by thread, each sorted by start, outer before inner; -1 for none.
Positions = NDArray[np.int64]

Column = NDArray[np.int64]


def enclosing(starts: Column, ends: Column, lengths: Sequence[int]) -> Positions:
    """Return (n,) the innermost event around each one, on threads with so many events.

    It is what is left of the events before it on a stack, from which those that have ended are taken.
    """
    around = np.arange(len(starts)) - 1
    firsts = np.cumsum([0, *lengths])[:-1]
    around[firsts[firsts < len(starts)]] = -1
    moved = np.flatnonzero(around >= 0)
    while len(moved):
        moved = moved[ends[around[moved]] <= starts[moved]]
        around[moved] = around[around[moved]]
        moved = moved[around[moved] >= 0]
    return around


def nearest(around: Positions, wanted: NDArray[np.bool_]) -> Positions:
    """Return (n,) the innermost wanted event around each one, given the innermost one of all."""
    found = around.copy()
    moved = np.flatnonzero(found >= 0)
    while len(moved):
        moved = moved[~wanted[found[moved]]]
        found[moved] = found[found[moved]]
        moved = moved[found[moved] >= 0]
    return found


def latest_before(keys: Column, times: Column, key: Column, time: Column) -> Positions:
    """Return (m,) the position of the last of (n,) rows, sorted by time, with a key before a time."""
    order = np.lexsort((times, keys))
    size = max(int(times.max(initial=0)), int(time.max(initial=0))) + 1
    ranks = keys[order] * size + times[order]
    at = ranks.searchsorted(key * size + time) - 1
    same = (at >= 0) & (np.append(keys[order], -1)[at] == key)
    return np.where(same, np.append(order, -1)[at], -1)


def joined(groups: Column, starts: Column, ends: Column) -> tuple[Column, Column, Column]:
    """Merge the spans of each group that touch or overlap; return groups, starts and ends, in that order.

    Empty ones are dropped, unless they are the only one of their group.
    """
    _, which, count = np.unique(groups, return_inverse=True, return_counts=True)
    some = (starts < ends) | (count[which] == 1)
    groups, starts, ends = groups[some], starts[some], ends[some]
    times, sign = np.append(starts, ends), np.repeat([1, -1], len(starts))
    order = np.lexsort((-sign, times, np.append(groups, groups)))
    under_way = sign[order].cumsum()
    begins = order[(under_way == 1) & (sign[order] > 0)]
    closes = order[under_way == 0]
    return np.append(groups, groups)[begins], times[begins], times[closes]
