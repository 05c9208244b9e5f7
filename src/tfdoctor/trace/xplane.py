"""Reads an XSpace file into columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tfdoctor.terms.humanize import counted
from tfdoctor.trace.events import LIMIT_PS, Kinds, decoded
from tfdoctor.trace.fields import BYTES, DamagedError, MessageBytes, Offsets
from tfdoctor.trace.model import EventType, Line, Plane, Trace, TypeTable
from tfdoctor.trace.names import END_OF_WINDOW, IDS, NUMERIC, SAMPLED, WANTED, clean
from tfdoctor.trace.stats import Value
from tfdoctor.trace.wire import PADDING, Message, damaged, empty, field_numbers, xplane_pb2, xspace

LIMIT = 2**64  # Quantities beyond are damaged and are left out

LIMIT_DAYS = LIMIT_PS // 10**12 // (24 * 60 * 60)

# Three years: a line that starts later counts time from 1970, not from the start of the profile.
ABSOLUTE_NS = 10**17
INTRA_OP = "_Eigen/"  # Part of the names of intra-op threads, which share the work of an operation (2.9 to 2.21)
TOGETHER = 2_000_000  # About how many events are sorted at once: each takes 40 bytes in between

Column = NDArray[np.int64]
TWICE = 2  # The agent says when the measured steps end, and once more if it has let the profiler run on


def read(path: Path) -> Trace:
    """Read one host's trace, up to the end of the measured steps; what was traced later is in its ``sampled``.

    Raises:
        InputError: the file cannot be read, is not an XSpace, is damaged or has no data.
    """
    content = MessageBytes.of(xspace(path))
    try:
        space, places = _split(content, "XSpace", "planes", 0, len(content.data) - PADDING)
        parts = [_split(content, "XPlane", "lines", *place) for place in places]
        found = [(plane, _lines(content, lines)) for plane, lines in parts]
        if not found:
            raise empty(path)
        first = min((line.timestamp_ns for _, lines in found for line in lines if len(line.start)), default=0)
        # The time that counts as 0: that of TensorFlow, or the first line's start in Unix time.
        origin = first if first > ABSOLUTE_NS else 0
        planes = tuple(_plane(plane, lines, content, origin) for plane, lines in found)
    except (DecodeError, DamagedError) as error:
        raise damaged(path) from error
    lines = [line for plane in planes for line in plane.lines]
    clipped = sum(
        int((np.abs(line.start_ps) == LIMIT_PS).sum() + (line.duration_ps == LIMIT_PS).sum()) for line in lines
    )
    limited = f"{counted(clipped, 'time')} in the trace are impossible and were limited to {LIMIT_DAYS} days"
    starts = (plane.stats.get("profile_start_time") for plane in planes)
    started = next((int(start) for start in starts if start), None)
    hosts, errors, warnings = (tuple(map(clean, said)) for said in (space.hostnames, space.errors, space.warnings))
    return measured(Trace(planes, hosts, errors, warnings, (limited,) if clipped else (), started))


class LineBytes(NamedTuple):
    """A line whose n events are bytes of the file: where they begin there, and how long they are."""

    name: str
    id: int
    timestamp_ns: int
    start: Offsets  # (n,)
    length: Offsets


def _split(content: MessageBytes, name: str, part: str, at: int, end: int) -> tuple[Message, list[tuple[int, int]]]:
    """Return a message without its fields of one name, and where the values of these are."""
    number, rest, places = field_numbers(name)[part], bytearray(), []
    for field, begin, value, after in content.walk(at, end):
        if field == number:
            places.append((value, after))
        else:
            rest += content.data[begin:after]
    return getattr(xplane_pb2(), name).FromString(bytes(rest)), places


def _lines(content: MessageBytes, places: list[tuple[int, int]]) -> list[LineBytes]:
    """Read lines, and find their events."""
    if not places:
        return []
    number, found = field_numbers("XLine")["events"], list[LineBytes]()
    firsts = [next((begin for field, begin, *_ in content.walk(*one) if field == number), one[1]) for one in places]
    at, limits = np.array([(first, end) for first, (_, end) in zip(firsts, places, strict=True)]).reshape(-1, 2).T
    starts, ends, counts, afters = content.repeated(number << 3 | BYTES, at, limits)
    for place, first, after, bounds in zip(places, firsts, afters, pairwise((0, *counts.tolist())), strict=True):
        line = xplane_pb2().XLine()
        if first <= after <= place[1]:
            line.ParseFromString(content.data[place[0] : first] + content.data[after : place[1]])
        start, end = starts[slice(*bounds)], ends[slice(*bounds)]
        if line.events or not first <= after <= place[1]:  # other fields lie between them
            line, events = _split(content, "XLine", "events", *place)
            start, end = np.array(events, starts.dtype).reshape(-1, 2).T
        found.append(LineBytes(line.display_name or line.name, line.id, line.timestamp_ns, start, end - start))
    return found


def _plane(plane: Message, lines: list[LineBytes], content: MessageBytes, origin_ns: int) -> Plane:
    names = {key: clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    wanted = {key: name for key, name in names.items() if name in WANTED}
    ids, described = sorted(plane.event_metadata), plane.event_metadata
    types = TypeTable(
        EventType(clean(one.name), clean(one.display_name), _stats(one.stats, wanted, names))
        for one in map(described.__getitem__, ids)
    )
    kinds = Kinds(np.array(ids, np.int64), types, names)
    # Of many short lines each alone would take longer.
    ends = np.cumsum([0, *(len(line.start) for line in lines)])
    together = groupby(range(len(lines)), key=lambda at: ends[at] // TOGETHER)
    read_lines = (_sorted(content, [lines[at] for at in places], kinds, origin_ns) for _, places in together)
    read_all = tuple(chain.from_iterable(read_lines))
    return Plane(clean(plane.name), plane.id, read_all, types, _stats(plane.stats, names, names))


def _stats(stats: Iterable[Message], wanted: Mapping[int, str], names: Mapping[int, str]) -> dict[str, Value]:
    """Read the wanted stats, without quantities that are not numbers, since facts compute with them."""
    values = dict[str, Value]()
    for stat in stats:
        name = wanted.get(stat.metadata_id)
        kind = stat.WhichOneof("value")
        if name is None or kind is None:
            continue
        value: Value = getattr(stat, kind)
        if kind == "ref_value":
            value = names.get(int(value), "")
        elif isinstance(value, str):
            value = clean(value)
        if name not in NUMERIC:
            values[name] = value
        elif isinstance(value, int | float) and abs(value) <= LIMIT:  # never true of NaN
            if name in IDS:
                values[name] = int(value) % 2**64
            elif value >= 0:  # sizes, counts and rates
                values[name] = value
    return values


def _sorted(content: MessageBytes, lines: Sequence[LineBytes], kinds: Kinds, origin_ns: int) -> Iterator[Line]:
    """Read lines of a plane, without the noise, and without events of a type that is not described."""
    start, length = map(np.concatenate, zip(*((line.start, line.length) for line in lines), strict=True))
    columns, stats = decoded(content, start, length, kinds)
    all_ends = np.cumsum([0, *(len(line.start) for line in lines)])
    ends = columns.row.searchsorted(all_ends.astype(np.int32))
    bases_ps = [min(max((line.timestamp_ns - origin_ns) * 1000, -LIMIT_PS), LIMIT_PS) for line in lines]
    kind, start_ps, duration_ps = columns.kind, columns.offset_ps, columns.duration_ps
    parts = [slice(*bounds) for bounds in pairwise(ends.tolist())]
    for base_ps, part in zip(bases_ps, parts, strict=True):
        start_ps[part] += base_ps
    # A TPU's own clock counts from the profile's start.
    for column, name in ((start_ps, "device_offset_ps"), (duration_ps, "device_duration_ps")):
        at, values = stats.integers(name)
        column[at] = values
        np.clip(column, 0 if column is duration_ps else -LIMIT_PS, LIMIT_PS, out=column)
    position = _sort(kind, start_ps, duration_ps, ends)
    stats = stats if position is None else stats.moved(position)
    titles = [clean(line.name) for line in lines]
    pools = np.array([INTRA_OP in name for name in titles], bool)
    task_lines, tasks_ps = _tasks(columns.tasks, all_ends, np.array(bases_ps, np.int64), pools)
    tasks_at = pairwise(task_lines.searchsorted(np.arange(len(lines) + 1)).tolist())
    tasks = (tasks_ps[slice(*bounds)] for bounds in tasks_at)
    return (
        Line(name, line.id, kinds.types, kind[part], start_ps[part], duration_ps[part], stats.part(part), its_tasks)
        for line, name, part, its_tasks in zip(lines, titles, parts, tasks, strict=True)
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


def measured(trace: Trace) -> Trace:
    """Return the trace up to the end of the measured steps, with all of it as ``sampled``.

    An event of the host that goes on at that time is left out, as if the profiler had stopped then. A trace in
    which nothing follows the measured steps is returned as it is.
    """
    ends_ps = sorted(event.end_ps for event in trace.host_events(END_OF_WINDOW))
    sampled = any(True for _ in trace.host_events(SAMPLED))
    if not ends_ps or (len(ends_ps) < TWICE and not sampled):
        return trace
    end_ps = ends_ps[0]
    planes = tuple(
        replace(plane, lines=tuple(_until(line, plane, end_ps) for line in plane.lines)) for plane in trace.planes
    )
    return replace(trace, planes=planes, sampled=trace)


def _until(line: Line, plane: Plane, end_ps: int) -> Line:
    """Return the events of a line up to a time: of the host those that have ended, of a device those that began."""
    ends = line.start_ps + line.duration_ps
    held = ends <= end_ps if plane.name.startswith("/host:") else line.start_ps < end_ps
    if held.all() and not len(line.tasks_ps):
        return line
    position = np.where(held, held.cumsum() - 1, -1)
    columns = {name: getattr(line, name)[held] for name in ("kind", "start_ps", "duration_ps")}
    tasks_ps = line.tasks_ps[line.tasks_ps[:, 1] <= end_ps]
    return replace(line, stats=line.stats.moved(position), tasks_ps=tasks_ps, **columns)
