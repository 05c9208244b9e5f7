"""Reads an XSpace file into columns: with ``wire`` the only module that knows the format."""

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
"""Characters that no name should have: control characters (TensorFlow 2.4 wrote names that begin
with NUL), and those that turn the direction of a terminal's text."""

LIMIT = 2**64
"""Quantities beyond are nonsense and are left out."""

LIMIT_PS = 2**60
LIMIT_DAYS = 13
"""Times beyond are nonsense and are cut off, so that differences of starts and ends fit int64."""

TASK = {f"{NOISE}StartRegion": 1, f"{NOISE}StopRegion": -1}
"""Where a thread of a pool begins and ends a task: events without a duration."""

INTRA_OP = "_Eigen/"
"""What the names of the threads hold on which operations divide their work (2.9 to 2.21)."""

ABSOLUTE_NS = 10**17
"""Three years: a line that starts later counts from 1970, not from the start of the profile."""


class StatNames(NamedTuple):
    """What one plane calls its stats: all of them, and those worth keeping on events."""

    all: Mapping[int, str]
    wanted: Mapping[int, str]


def read(path: Path) -> Trace:
    """Read one host's trace.

    Raises:
        InputError: the file cannot be read, is no XSpace, is damaged or holds nothing.
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
    """Say how many times had to be cut off."""
    lines = [line for plane in planes for line in plane.lines]
    cut = sum(
        int((np.abs(line.start_ps) == LIMIT_PS).sum() + (line.duration_ps == LIMIT_PS).sum())
        for line in lines
    )
    if cut:
        yield f"{counted(cut, 'time')} in the trace are impossible and were limited to {LIMIT_DAYS} days"


def _origin_ns(space: Message) -> int:
    """Return what times count from: 0 as TensorFlow saves them, else the first line's start."""
    starts = [x.timestamp_ns for plane in space.planes for x in plane.lines if len(x.events)]
    first = min(starts, default=0)
    return first if first > ABSOLUTE_NS else 0


def _plane(plane: Message, origin_ns: int) -> Plane:
    every = {key: _clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    names = StatNames(every, {key: name for key, name in every.items() if name in WANTED})
    order = sorted(plane.event_metadata)
    types = tuple(_type(plane.event_metadata[key], names) for key in order)
    index = {
        key: at
        for at, (key, kind) in enumerate(zip(order, types, strict=True))
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
    """Add the tasks of a thread on which operations divide their work; an open one is left out."""
    if INTRA_OP not in line.name:
        return line
    base = (raw.timestamp_ns - origin_ns) * 1000
    kinds = {key: TASK.get(metadata.name, 0) for key, metadata in plane.event_metadata.items()}
    edges = [(_within(base + e.offset_ps), kinds.get(e.metadata_id, 0)) for e in raw.events]
    edges = sorted(edge for edge in edges if edge[1])
    spans = [
        (start, stop)
        for (start, begins), (stop, ends) in pairwise(edges)
        if begins > 0 > ends and start < stop
    ]
    return replace(line, tasks_ps=np.array(spans, np.int64).reshape(-1, 2))


def _device_time(stats: Mapping[str, Value], start: int, duration: int) -> tuple[int, int]:
    """Prefer a TPU's own clock, which counts from the profile's start, to the host's."""
    return (
        int(stats.get("device_offset_ps", start)),
        int(stats.get("device_duration_ps", duration)),
    )


def _times(values: list[int]) -> NDArray[np.int64]:
    """Return times as a column, nonsense cut off."""
    try:
        column = np.fromiter(values, np.int64, len(values))
    except OverflowError:
        column = np.array([_within(value) for value in values], np.int64)
    return np.clip(column, -LIMIT_PS, LIMIT_PS)


def _within(time_ps: int) -> int:
    return min(max(time_ps, -LIMIT_PS), LIMIT_PS)


def _reordered(
    found: Mapping[int, dict[str, Value]], order: NDArray[np.intp]
) -> dict[int, dict[str, Value]]:
    """Return the stats by the events' sorted positions, in that order."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    return dict(sorted((int(position[at]), stats) for at, stats in found.items()))


def _stats(
    stats: Iterable[Message], wanted: Mapping[int, str], names: Mapping[int, str]
) -> dict[str, Value]:
    """Read the wanted stats; a quantity that is no number is left out, so that facts may count."""
    found = {}
    for stat in stats:
        name = wanted.get(stat.metadata_id)
        value = None if name is None else _value(stat, names)
        if name is None or value is None:
            continue
        if name not in NUMERIC:
            found[name] = value
        elif isinstance(value, int | float) and abs(value) <= LIMIT:  # never true of NaN
            found[name] = int(value) % 2**64 if name in IDS else value
    return found


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
