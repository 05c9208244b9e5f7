"""Reads an XSpace file into columns; only this module and ``wire`` know the format."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.humanize import counted
from tfdoctor.trace.events import EventColumns, decoded
from tfdoctor.trace.fields import DamagedError
from tfdoctor.trace.model import NO_TASKS, EventType, Line, Plane, Trace
from tfdoctor.trace.names import IDS, NOISE, NUMERIC, WANTED
from tfdoctor.trace.stat_values import StatNames
from tfdoctor.trace.stats import Value
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import Message, damaged, parse_without_events

LIMIT = 2**64
"""Quantities beyond are damaged and are left out."""

LIMIT_PS = 2**60
LIMIT_DAYS = 13
"""Times beyond are damaged and are clipped, so that differences of starts and ends fit int64."""

TASK = {f"{NOISE}StartRegion": 1, f"{NOISE}StopRegion": -1}
"""Events without a duration, at which a thread of a pool begins (1) and ends (-1) a task."""

INTRA_OP = "_Eigen/"
"""Part of the names of intra-op threads, which share the work of an operation (2.9 to 2.21)."""

ABSOLUTE_NS = 10**17
"""Three years: a line that starts later counts time from 1970, not from the start of the profile."""


def read(path: Path) -> Trace:
    """Read one host's trace.

    Raises:
        InputError: the file cannot be read, is not an XSpace, is damaged or has no data.
    """
    space = parse_without_events(path)
    origin = _origin_ns(space)
    try:
        planes = tuple(_plane(plane, origin) for plane in space.planes)
    except DamagedError as error:
        raise damaged(path) from error
    started = (plane.stats.get("profile_start_time") for plane in planes)
    return Trace(
        planes,
        tuple(map(clean, space.hostnames)),
        tuple(map(clean, space.errors)),
        tuple(map(clean, space.warnings)),
        tuple(_damage(planes)),
        next((int(start) for start in started if start), None),
    )


def _damage(planes: tuple[Plane, ...]) -> Iterator[str]:
    """Yield a sentence on the number of clipped times, if any."""
    lines = [line for plane in planes for line in plane.lines]
    clipped = sum(
        int((np.abs(line.start_ps) == LIMIT_PS).sum() + (line.duration_ps == LIMIT_PS).sum())
        for line in lines
    )
    if clipped:
        yield f"{counted(clipped, 'time')} in the trace are impossible and were limited to {LIMIT_DAYS} days"


def _origin_ns(space: Message) -> int:
    """Return the time that counts as 0: that of TensorFlow, or the first line's start in Unix time."""
    starts = [x.timestamp_ns for plane in space.planes for x in plane.lines if len(x.events)]
    first = min(starts, default=0)
    return first if first > ABSOLUTE_NS else 0


def _plane(plane: Message, origin_ns: int) -> Plane:
    all_names = {key: clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    names = StatNames(all_names, {key: name for key, name in all_names.items() if name in WANTED})
    ids = sorted(plane.event_metadata)
    types = tuple(_type(plane.event_metadata[key], names) for key in ids)
    lines = tuple(
        _line(line, _Types(np.array(ids, np.int64), types), names, origin_ns)
        for line in plane.lines
    )
    stats = _stats(plane.stats, names.all, names.all)
    return Plane(clean(plane.name), plane.id, lines, types, stats)


def _type(metadata: Message, names: StatNames) -> EventType:
    stats = _stats(metadata.stats, names.wanted, names.all)
    return EventType(clean(metadata.name), clean(metadata.display_name), stats)


class _Types(NamedTuple):
    """The types of a plane's events, and their ids in order."""

    ids: NDArray[np.int64]
    all: tuple[EventType, ...]

    def positions(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of (n,) ids; -1 for those that are not described."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        at = np.minimum(self.ids.searchsorted(ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, at, -1)


def _line(line: Message, types: _Types, names: StatNames, origin_ns: int) -> Line:
    """Read a line's events but for the noise, and those of a type that is not described."""
    events = decoded([*line.events], names)
    kind, start_ps, duration_ps = _columns(events, types, (line.timestamp_ns - origin_ns) * 1000)
    noise = np.array([kind.name.startswith(NOISE) for kind in types.all] + [True])
    order = np.lexsort((-duration_ps, start_ps))
    order = order[~noise[kind[order]]]
    position = np.full(len(kind), -1)
    position[order] = np.arange(len(order))
    name = clean(line.display_name or line.name)
    return Line(
        name=name,
        id=line.id,
        types=types.all,
        kind=kind[order].astype(np.int32),
        start_ps=start_ps[order],
        duration_ps=duration_ps[order],
        stats=events.stats.moved(position),
        tasks_ps=_tasks(types.all, kind, start_ps) if INTRA_OP in name else NO_TASKS,
    )


Column = NDArray[np.int64]


def _columns(events: EventColumns, types: _Types, base_ps: int) -> tuple[Column, Column, Column]:
    """Return types, starts and durations, (n,), by a TPU's own clock, which counts from the profile's start."""
    start_ps, duration_ps = (
        _limited(events.offset_ps) + _clipped(base_ps),
        events.duration_ps.copy(),
    )
    for column, name in ((start_ps, "device_offset_ps"), (duration_ps, "device_duration_ps")):
        at, values = events.stats.integers(name)
        column[at] = values
    return types.positions(events.type_id), _limited(start_ps), np.maximum(_limited(duration_ps), 0)


def _tasks(types: tuple[EventType, ...], kind: Column, start_ps: Column) -> Column:
    """Return the (m, 2) tasks of an intra-op thread, without unfinished ones."""
    edges = np.array([TASK.get(kind.name, 0) for kind in types] + [0])[kind]
    order = np.lexsort((edges, start_ps))
    order = order[edges[order] != 0]
    edge, time = edges[order], start_ps[order]
    whole = (edge[:-1] > 0) & (edge[1:] < 0) & (time[:-1] < time[1:])
    return np.stack((time[:-1][whole], time[1:][whole]), axis=1)


def _limited(times_ps: Column) -> Column:
    return np.clip(times_ps, -LIMIT_PS, LIMIT_PS)


def _clipped(time_ps: int) -> int:
    return min(max(time_ps, -LIMIT_PS), LIMIT_PS)


def _stats(
    stats: Iterable[Message], wanted: Mapping[int, str], names: Mapping[int, str]
) -> dict[str, Value]:
    """Read the wanted stats, without quantities that are not numbers, since facts compute with them."""
    values = {}
    for stat in stats:
        name = wanted.get(stat.metadata_id)
        value = None if name is None else _value(stat, names)
        if name is None or value is None:
            continue
        if name not in NUMERIC:
            values[name] = value
        elif isinstance(value, int | float) and abs(value) <= LIMIT:  # never true of NaN
            values[name] = int(value) % 2**64 if name in IDS else value
    return values


def _value(stat: Message, names: Mapping[int, str]) -> Value | None:
    kind = stat.WhichOneof("value")
    if kind is None:
        return None
    value: Value = getattr(stat, kind)
    if kind == "ref_value":
        return names.get(int(value), "")
    return clean(value) if isinstance(value, str) else value
