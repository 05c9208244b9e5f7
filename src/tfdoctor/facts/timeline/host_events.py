"""Events of the host's threads: operations, executors, and events that contain no others."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import EventType, Line
from tfdoctor.trace.names import EAGER_OPERATION, EXECUTOR, WAIT, XLA_ON_CPU

UNNAMED = "compiled or unnamed"  # The type given to work whose operation the trace does not name


def select(line: Line, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Line:
    """Return a line with the events that a mask or positions select, without their stats."""
    columns = (line.kind[chosen], line.start_ps[chosen], line.duration_ps[chosen])
    return Line(line.name, line.id, line.types, *columns)


def operation_label(kind: EventType) -> tuple[str, str, str] | None:
    """Return (name, type, what ran) of an operation's event, or None for any other event."""
    return _label(kind.name, kind.display_name)


@lru_cache(maxsize=65536)  # of a trace with thousands of threads, each has the same types
def _label(called: str, display_name: str) -> tuple[str, str, str] | None:
    if XLA_ON_CPU.fullmatch(called):
        return "", UNNAMED, called
    if eager := EAGER_OPERATION.fullmatch(called):
        return eager[1], eager[1], called
    name, colon, ending = called.rpartition(":")
    if not colon or not name or name.endswith(":") or ending != display_name:
        return None
    if WAIT.fullmatch(called) or ending.startswith(("IteratorGetNext", "_Arg", "_Ret")):
        return None
    return name, ending, called


def leaves(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether an event contains no other event of its line."""
    if not len(line):
        return np.zeros(0, dtype=bool)
    ends = line.start_ps + line.duration_ps
    following = np.append(line.start_ps[1:], np.iinfo(np.int64).max)
    return ends <= following


def executors(line: Line, name: str = EXECUTOR) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return the start, end and execution id of every stretch of an executor on this thread."""
    indices = np.flatnonzero(is_named(line, name.__eq__))
    starts = line.start_ps[indices]
    return starts, starts + line.duration_ps[indices], line.stats.ids_of("id", indices)


def executions_of(line: Line, wanted: NDArray[np.bool_] | None = None) -> NDArray[np.uint64]:
    """Return (n,) the id of the execution that an event lies in, 0 for none.

    ``wanted``, (number of kinds,), picks events by kind; (n,) is then their number.
    """
    starts, ends, ids = executors(line)
    times = line.start_ps if wanted is None else line.start_ps[wanted[line.kind]]
    if not len(starts):
        return np.zeros(len(times), np.uint64)
    latest = np.searchsorted(starts, times, side="right") - 1
    inside = (latest >= 0) & (times < ends[latest])
    executions: NDArray[np.uint64] = np.where(inside, ids[latest], np.uint64(0))
    return executions


Column = NDArray[np.int64]
# Positions of events, thread by thread, each sorted by start, outer before inner; -1 for none.
Positions = NDArray[np.int64]


def enclosing(starts: Column, ends: Column, lengths: Sequence[int]) -> Positions:
    """Return (n,) the innermost event around each one, on threads with so many events.

    It is what is left of the events before it on a stack, from which those that have ended are taken.
    """
    around = np.arange(len(starts)) - 1
    firsts = np.cumsum([0, *lengths])[:-1]
    around[firsts[firsts < len(starts)]] = -1
    return _climbed(around, lambda event, holder: ends[holder] <= starts[event])


def nearest(around: Positions, wanted: NDArray[np.bool_]) -> Positions:
    """Return (n,) the innermost wanted event around each one, given the innermost one of all."""
    return _climbed(around.copy(), lambda _, holder: ~wanted[holder])


def _climbed(found: Positions, passes: Callable[[Positions, Positions], NDArray[np.bool_]]) -> Positions:
    """Go on from each holder that an event passes to the one that it was given itself, all events at once."""
    moved = np.flatnonzero(found >= 0)
    while len(moved):
        moved = moved[passes(moved, found[moved])]
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
