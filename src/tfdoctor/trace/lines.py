"""Sorts the events of a plane into its lines."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.events import EventColumns, decoded
from tfdoctor.trace.model import Line, TypeTable
from tfdoctor.trace.names import NOISE
from tfdoctor.trace.stat_values import StatNames
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import Message

# Times beyond, 13 days, are damaged and are clipped, so that differences of starts and ends fit int64.
LIMIT_PS = 2**60
# Events without a duration, at which a thread of a pool begins (1) and ends (-1) a task.
TASK = {f"{NOISE}StartRegion": 1, f"{NOISE}StopRegion": -1}
INTRA_OP = "_Eigen/"  # Part of the names of intra-op threads, which share the work of an operation (2.9 to 2.21)
TOGETHER = 2_000_000  # About how many events are sorted at once: what that needs in between is 200 bytes for each

Column = NDArray[np.int64]


class PlaneTypes(NamedTuple):
    """The types of a plane's events, and their ids in order."""

    ids: Column
    all: TypeTable

    def positions(self, ids: Column) -> Column:
        """Return the positions of (n,) ids; -1 for those that are not described."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        at = np.minimum(self.ids.searchsorted(ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, at, -1)

    def marks(self, values: Sequence[int]) -> Column:
        """Return a value for each type, and 0 in the last place for those that are not described."""
        return np.array([*values, 0], np.int64)


class _Times(NamedTuple):
    """The n events as stored: their lines, the positions of their types, and their times."""

    line: Column
    kind: Column  # -1: not described
    start_ps: Column
    duration_ps: Column

    @classmethod
    def of(cls, events: EventColumns, types: PlaneTypes, bases_ps: Column) -> Self:
        """Place events in time, by a TPU's own clock if it has one, which counts from the profile's start."""
        start_ps = _limited(events.offset_ps) + bases_ps[events.line]
        duration_ps = events.duration_ps.copy()
        for column, name in ((start_ps, "device_offset_ps"), (duration_ps, "device_duration_ps")):
            at, values = events.stats.integers(name)
            column[at] = values
        start_ps, duration_ps = _limited(start_ps), np.maximum(_limited(duration_ps), 0)
        return cls(events.line, types.positions(events.type_id), start_ps, duration_ps)

    def order(self, types: PlaneTypes) -> NDArray[np.intp]:
        """Return the events line by line, in the order of a line, without noise and those not described."""
        kept = types.marks([not kind.name.startswith(NOISE) for kind in types.all]) > 0
        order = np.lexsort((-self.duration_ps, self.start_ps, self.line))
        return order[kept[self.kind[order]]]

    def tasks(self, types: PlaneTypes, pools: NDArray[np.bool_]) -> tuple[Column, Column]:
        """Return the lines, (m,), and the times, (m, 2), of the tasks of intra-op threads that were finished."""
        edges = types.marks([TASK.get(kind.name, 0) for kind in types.all])[self.kind]
        rows = np.flatnonzero((edges != 0) & pools[self.line])
        rows = rows[np.lexsort((edges[rows], self.start_ps[rows], self.line[rows]))]
        edge, time, line = edges[rows], self.start_ps[rows], self.line[rows]
        whole = (edge[:-1] > 0) & (edge[1:] < 0) & (time[:-1] < time[1:]) & (line[:-1] == line[1:])
        return line[:-1][whole], np.stack((time[:-1][whole], time[1:][whole]), axis=1)


def lines_of(lines: Sequence[Message], types: PlaneTypes, names: StatNames, origin_ns: int) -> Iterator[Line]:
    """Yield the lines of a plane, without the noise, and without events of a type that is not described.

    Raises:
        DamagedError: their events are none.
    """
    ends = np.cumsum([0, *(len(line.events) for line in lines)])
    groups = groupby(range(len(lines)), key=lambda at: ends[at] // TOGETHER)
    for _, places in groups:
        yield from _sorted([lines[at] for at in places], types, names, origin_ns)


def _sorted(lines: Sequence[Message], types: PlaneTypes, names: StatNames, origin_ns: int) -> Iterator[Line]:
    """Read lines together: of many short ones, each alone would take longer."""
    events = decoded([line.events for line in lines], names)
    bases_ps = [_clipped((line.timestamp_ns - origin_ns) * 1000) for line in lines]
    times = _Times.of(events, types, np.array(bases_ps, np.int64))
    order = times.order(types)
    position = np.full(len(times.kind), -1)
    position[order] = np.arange(len(order))
    whole = Line(
        name="",
        id=0,
        types=types.all,
        kind=times.kind[order].astype(np.int32),
        start_ps=times.start_ps[order],
        duration_ps=times.duration_ps[order],
        stats=events.stats.moved(position),
    )
    titles = [clean(line.display_name or line.name) for line in lines]
    task_lines, tasks_ps = times.tasks(types, np.array([INTRA_OP in name for name in titles], bool))
    return (
        replace(_part(whole, *events_at), name=name, id=line.id, tasks_ps=tasks_ps[slice(*tasks_at)])
        for line, name, events_at, tasks_at in zip(
            lines,
            titles,
            _stretches(times.line[order], len(lines)),
            _stretches(task_lines, len(lines)),
            strict=True,
        )
    )


def _stretches(line: Column, count: int) -> Iterator[tuple[int, int]]:
    """Yield for each of ``count`` lines where its rows begin and end in a sorted column of lines."""
    return pairwise(line.searchsorted(np.arange(count + 1)).tolist())


def _part(whole: Line, first: int, last: int) -> Line:
    """Return some of the events, whose columns are views."""
    return replace(
        whole,
        kind=whole.kind[first:last],
        start_ps=whole.start_ps[first:last],
        duration_ps=whole.duration_ps[first:last],
        stats=whole.stats.part(first, last),
    )


def _limited(times_ps: Column) -> Column:
    return np.clip(times_ps, -LIMIT_PS, LIMIT_PS)


def _clipped(time_ps: int) -> int:
    return min(max(time_ps, -LIMIT_PS), LIMIT_PS)
