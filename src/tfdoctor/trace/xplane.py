"""Reads an XSpace file into columns; only this module and ``wire`` know the format."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.humanize import counted
from tfdoctor.trace.model import EventType, Line, Plane, Trace, Value
from tfdoctor.trace.names import IDS, NOISE, NUMERIC, WANTED
from tfdoctor.trace.wire import Message, parse

HIDDEN = dict.fromkeys(
    [*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
"""Characters to remove from names: control characters (TensorFlow 2.4 wrote names that begin with NUL), and
those that change the direction of text on a terminal."""

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


class StatNames(NamedTuple):
    """The names of a plane's stats by id: all of them, and those to store on events."""

    all: Mapping[int, str]
    wanted: Mapping[int, str]


def read(path: Path) -> Trace:
    """Read one host's trace.

    Raises:
        InputError: the file cannot be read, is not an XSpace, is damaged or has no data.
    """
    space = parse(path)
    origin = _origin_ns(space)
    planes = tuple(_plane(plane, origin) for plane in space.planes)
    started = (plane.stats.get("profile_start_time") for plane in planes)
    return Trace(
        planes,
        tuple(map(_clean, space.hostnames)),
        tuple(map(_clean, space.errors)),
        tuple(map(_clean, space.warnings)),
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
    all_names = {key: _clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    names = StatNames(all_names, {key: name for key, name in all_names.items() if name in WANTED})
    order = sorted(plane.event_metadata)
    types = tuple(_type(plane.event_metadata[key], names) for key in order)
    index = {
        key: position
        for position, (key, kind) in enumerate(zip(order, types, strict=True))
        if not kind.name.startswith(NOISE)
    }
    lines = tuple(_line(line, types, index, names, origin_ns) for line in plane.lines)
    lines = tuple(
        _with_tasks(line, raw, plane, origin_ns)
        for line, raw in zip(lines, plane.lines, strict=True)
    )
    stats = _stats(plane.stats, names.all, names.all)
    return Plane(_clean(plane.name), plane.id, lines, types, stats)


def _type(metadata: Message, names: StatNames) -> EventType:
    stats = _stats(metadata.stats, names.wanted, names.all)
    return EventType(_clean(metadata.name), _clean(metadata.display_name), stats)


def _line(
    line: Message,
    types: tuple[EventType, ...],
    index: Mapping[int, int],
    names: StatNames,
    origin_ns: int,
) -> Line:
    """Read a line's events but for the noise, and those of a type that is not described."""
    kinds, starts, durations, stats = _columns(line, index, names, origin_ns)
    start_ps, duration_ps = _times(starts), np.maximum(_times(durations), 0)
    order = np.lexsort((-duration_ps, start_ps))
    return Line(
        name=_clean(line.display_name or line.name),
        id=line.id,
        types=types,
        kind=np.array(kinds, np.int32)[order],
        start_ps=start_ps[order],
        duration_ps=duration_ps[order],
        stats=_reordered(stats, order),
    )


Columns = tuple[list[int], list[int], list[int], dict[int, dict[str, Value]]]
"""The n events of a line in their order on disk: types, starts and durations, (n,), and the stats of some."""


def _columns(line: Message, index: Mapping[int, int], names: StatNames, origin_ns: int) -> Columns:
    base = (line.timestamp_ns - origin_ns) * 1000
    kinds: list[int] = []
    starts: list[int] = []
    durations: list[int] = []
    kept: dict[int, dict[str, Value]] = {}
    for event in line.events:
        kind = index.get(event.metadata_id)
        if kind is None:
            continue
        start, duration = base + event.offset_ps, event.duration_ps
        if event.stats and (stats := _stats(event.stats, names.wanted, names.all)):
            kept[len(kinds)] = stats
            start, duration = _device_time(stats, start, duration)
        kinds.append(kind)
        starts.append(start)
        durations.append(duration)
    return kinds, starts, durations, kept


def _with_tasks(line: Line, raw: Message, plane: Message, origin_ns: int) -> Line:
    """Add the tasks of an intra-op thread, without unfinished ones."""
    if INTRA_OP not in line.name:
        return line
    base = (raw.timestamp_ns - origin_ns) * 1000
    kinds = {key: TASK.get(metadata.name, 0) for key, metadata in plane.event_metadata.items()}
    edges = [(_clipped(base + e.offset_ps), kinds.get(e.metadata_id, 0)) for e in raw.events]
    edges = sorted(edge for edge in edges if edge[1])
    spans = [
        (start, stop)
        for (start, begins), (stop, ends) in pairwise(edges)
        if begins > 0 > ends and start < stop
    ]
    return replace(line, tasks_ps=np.array(spans, np.int64).reshape(-1, 2))


def _device_time(stats: Mapping[str, Value], start: int, duration: int) -> tuple[int, int]:
    """Return start and duration by a TPU's own clock, which counts from the profile's start, if it has one."""
    return (
        int(stats.get("device_offset_ps", start)),
        int(stats.get("device_duration_ps", duration)),
    )


def _times(values: list[int]) -> NDArray[np.int64]:
    """Return times as a column, clipped to the limit."""
    try:
        column = np.fromiter(values, np.int64, len(values))
    except OverflowError:
        column = np.array([_clipped(value) for value in values], np.int64)
    return np.clip(column, -LIMIT_PS, LIMIT_PS)


def _clipped(time_ps: int) -> int:
    return min(max(time_ps, -LIMIT_PS), LIMIT_PS)


def _reordered(
    stats_of: Mapping[int, dict[str, Value]], order: NDArray[np.intp]
) -> dict[int, dict[str, Value]]:
    """Return the stats by the events' positions in sorted order."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    return dict(sorted((int(position[event]), stats) for event, stats in stats_of.items()))


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
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    return text if text.isprintable() else text.translate(HIDDEN)
