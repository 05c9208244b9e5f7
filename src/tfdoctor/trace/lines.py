"""Sorts the events of a plane into its lines."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.events import LIMIT_PS, Kinds, decoded
from tfdoctor.trace.model import Line
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import Message

INTRA_OP = "_Eigen/"  # Part of the names of intra-op threads, which share the work of an operation (2.9 to 2.21)
TOGETHER = 2_000_000  # About how many events are sorted at once: each takes 40 bytes in between

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
    columns, stats = decoded([line.events for line in lines], kinds)
    all_ends = np.cumsum([0, *(len(line.events) for line in lines)])
    ends = columns.row.searchsorted(all_ends.astype(np.int32))
    bases_ps = [min(max((line.timestamp_ns - origin_ns) * 1000, -LIMIT_PS), LIMIT_PS) for line in lines]
    kind, start_ps, duration_ps = columns.kind, columns.offset_ps, columns.duration_ps
    for base_ps, (first, last) in zip(bases_ps, pairwise(ends.tolist()), strict=True):
        start_ps[first:last] += base_ps
    # A TPU's own clock counts from the profile's start.
    for column, name in ((start_ps, "device_offset_ps"), (duration_ps, "device_duration_ps")):
        at, values = stats.integers(name)
        column[at] = values
        np.clip(column, 0 if column is duration_ps else -LIMIT_PS, LIMIT_PS, out=column)
    position = _sort(kind, start_ps, duration_ps, ends)
    stats = stats if position is None else stats.moved(position)
    titles = [clean(line.display_name or line.name) for line in lines]
    pools = np.array([INTRA_OP in name for name in titles], bool)
    task_lines, tasks_ps = _tasks(columns.tasks, all_ends, np.array(bases_ps, np.int64), pools)
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


def _sort(kind: NDArray[np.int32], start_ps: Column, duration_ps: Column, ends: NDArray[np.intp]) -> Column | None:
    """Sort the events of each line by start, outer before inner; return their new positions, None for the same."""
    wrong = start_ps[1:] < start_ps[:-1]
    wrong |= (start_ps[1:] == start_ps[:-1]) & (duration_ps[1:] > duration_ps[:-1])
    wrong[ends[(ends > 0) & (ends < len(kind))] - 1] = False  # the first of the next line
    lines = np.unique(ends.searchsorted(np.flatnonzero(wrong), "right")).tolist()
    if not lines:  # as in most traces
        return None
    position = np.arange(len(kind))
    for line in lines:
        part = slice(ends[line - 1], ends[line])
        order = np.lexsort((-duration_ps[part], start_ps[part]))
        position[part][order] = position[part].copy()
        for column in (kind, start_ps, duration_ps):
            column[part] = column[part][order]
    return position


def _tasks(tasks: Column, ends: Column, bases_ps: Column, pools: NDArray[np.bool_]) -> tuple[Column, Column]:
    """Return the lines, (m,), and the times, (m, 2), of the tasks of intra-op threads that were finished."""
    line = ends.searchsorted(tasks[0], "right") - 1
    tasks, line = tasks[1:, pools[line]], line[pools[line]]
    edge, time = tasks[0], np.clip(tasks[1] + bases_ps[line], -LIMIT_PS, LIMIT_PS)
    order = np.lexsort((edge, time, line))
    edge, time, line = edge[order], time[order], line[order]
    whole = (edge[:-1] > 0) & (edge[1:] < 0) & (time[:-1] < time[1:]) & (line[:-1] == line[1:])
    return line[:-1][whole], np.stack((time[:-1][whole], time[1:][whole]), axis=1)
