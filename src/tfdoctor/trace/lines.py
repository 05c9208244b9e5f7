"""Sorts the events of a plane into its lines."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.events import LIMIT_PS, Kinds, decoded
from tfdoctor.trace.model import Line
from tfdoctor.trace.names import NOISE
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import Message

# Events without a duration, at which a thread of a pool begins (1) and ends (-1) a task.
TASK = {f"{NOISE}StartRegion": 1, f"{NOISE}StopRegion": -1}
INTRA_OP = "_Eigen/"  # Part of the names of intra-op threads, which share the work of an operation (2.9 to 2.21)
TOGETHER = 2_000_000  # About how many events are sorted at once: each takes 60 bytes in between

Column = NDArray[np.int64]


def lines_of(lines: Sequence[Message], kinds: Kinds, origin_ns: int) -> Iterator[Line]:
    """Yield the lines of a plane, without the noise, and without events of a type that is not described.

    Raises:
        DamagedError: their events are none.
    """
    ends = np.cumsum([0, *(len(line.events) for line in lines)])
    groups = groupby(range(len(lines)), key=lambda at: ends[at] // TOGETHER)
    for _, places in groups:
        yield from _sorted([lines[at] for at in places], kinds, origin_ns)


def _sorted(lines: Sequence[Message], kinds: Kinds, origin_ns: int) -> Iterator[Line]:
    """Read lines together: of many short ones, each alone would take longer."""
    ends = np.cumsum([0, *(len(line.events) for line in lines)])
    kind, start_ps, duration_ps, stats = decoded([line.events for line in lines], kinds)
    for line, (first, last) in zip(lines, pairwise(ends.tolist()), strict=True):
        start_ps[first:last] += min(max((line.timestamp_ns - origin_ns) * 1000, -LIMIT_PS), LIMIT_PS)
    # A TPU's own clock counts from the profile's start.
    for column, name in ((start_ps, "device_offset_ps"), (duration_ps, "device_duration_ps")):
        at, values = stats.integers(name)
        column[at] = values
        np.clip(column, 0 if column is duration_ps else -LIMIT_PS, LIMIT_PS, out=column)
    titles = [clean(line.display_name or line.name) for line in lines]
    pools = np.array([INTRA_OP in name for name in titles], bool)
    task_lines, tasks_ps = _tasks(
        _marks([TASK.get(one.name, 0) for one in kinds.types])[kind], start_ps, ends, pools
    )
    rows = np.flatnonzero(_marks([not one.name.startswith(NOISE) for one in kinds.types])[kind])
    ends = rows.searchsorted(ends)
    _order(rows, start_ps, duration_ps, ends)
    position = np.full(len(kind), -1, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    stats = stats.moved(position)
    kind, start_ps, duration_ps = kind[rows], start_ps[rows], duration_ps[rows]
    tasks_at = pairwise(task_lines.searchsorted(np.arange(len(lines) + 1)).tolist())
    return (
        Line(
            name,
            line.id,
            kinds.types,
            kind[first:last],
            start_ps[first:last],
            duration_ps[first:last],
            stats.part(first, last),
            tasks_ps[slice(*tasks)],
        )
        for line, name, (first, last), tasks in zip(lines, titles, pairwise(ends.tolist()), tasks_at, strict=True)
    )


def _marks(values: Sequence[int]) -> NDArray[np.int8]:
    """Return a value for each type, and 0 in the last place for those that are not described."""
    return np.array([*values, 0], np.int8)


def _order(rows: NDArray[np.intp], start_ps: Column, duration_ps: Column, ends: NDArray[np.intp]) -> None:
    """Sort the rows of each line by start, outer before inner: of most lines they are in order already."""
    start, duration = start_ps[rows], duration_ps[rows]
    after = start[1:] < start[:-1]
    after |= (start[1:] == start[:-1]) & (duration[1:] > duration[:-1])
    for at in np.unique(ends.searchsorted(np.flatnonzero(after) + 1, "right")).tolist():
        part = slice(ends[at - 1], ends[at])
        rows[part] = rows[part][np.lexsort((-duration[part], start[part]))]


def _tasks(
    edges: NDArray[np.int8], start_ps: Column, ends: Column, pools: NDArray[np.bool_]
) -> tuple[Column, Column]:
    """Return the lines, (m,), and the times, (m, 2), of the tasks of intra-op threads that were finished."""
    rows = np.flatnonzero(edges)
    line = ends.searchsorted(rows, "right") - 1
    rows, line = rows[pools[line]], line[pools[line]]
    order = np.lexsort((edges[rows], start_ps[rows], line))
    edge, time, line = edges[rows[order]], start_ps[rows[order]], line[order]
    whole = (edge[:-1] > 0) & (edge[1:] < 0) & (time[:-1] < time[1:]) & (line[:-1] == line[1:])
    return line[:-1][whole], np.stack((time[:-1][whole], time[1:][whole]), axis=1)
