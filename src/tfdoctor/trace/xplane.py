"""Reads an XSpace file into columns."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from tfdoctor.terms.humanize import counted
from tfdoctor.trace.events import LIMIT_PS, Kinds
from tfdoctor.trace.fields import DamagedError
from tfdoctor.trace.lines import lines_of
from tfdoctor.trace.measured import measured
from tfdoctor.trace.model import EventType, Plane, Trace, TypeTable
from tfdoctor.trace.names import IDS, NUMERIC, WANTED
from tfdoctor.trace.stats import Value
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import Message, damaged, parse_without_events

LIMIT = 2**64  # Quantities beyond are damaged and are left out

LIMIT_DAYS = LIMIT_PS // 10**12 // (24 * 60 * 60)

# Three years: a line that starts later counts time from 1970, not from the start of the profile.
ABSOLUTE_NS = 10**17


def read(path: Path) -> Trace:
    """Read one host's trace, up to the end of the measured steps; what was traced later is in its ``sampled``.

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
    trace = Trace(
        planes,
        tuple(map(clean, space.hostnames)),
        tuple(map(clean, space.errors)),
        tuple(map(clean, space.warnings)),
        tuple(_damage(planes)),
        next((int(start) for start in started if start), None),
    )
    return measured(trace)


def _damage(planes: tuple[Plane, ...]) -> Iterator[str]:
    """Yield a sentence on the number of clipped times, if any."""
    lines = [line for plane in planes for line in plane.lines]
    clipped = sum(
        int((np.abs(line.start_ps) == LIMIT_PS).sum() + (line.duration_ps == LIMIT_PS).sum()) for line in lines
    )
    if clipped:
        yield f"{counted(clipped, 'time')} in the trace are impossible and were limited to {LIMIT_DAYS} days"


def _origin_ns(space: Message) -> int:
    """Return the time that counts as 0: that of TensorFlow, or the first line's start in Unix time."""
    starts = [x.timestamp_ns for plane in space.planes for x in plane.lines if len(x.events)]
    first = min(starts, default=0)
    return first if first > ABSOLUTE_NS else 0


def _plane(plane: Message, origin_ns: int) -> Plane:
    names = {key: clean(metadata.name) for key, metadata in plane.stat_metadata.items()}
    wanted = {key: name for key, name in names.items() if name in WANTED}
    ids, described = sorted(plane.event_metadata), plane.event_metadata
    types = TypeTable(
        EventType(clean(one.name), clean(one.display_name), _stats(one.stats, wanted, names))
        for one in map(described.__getitem__, ids)
    )
    lines = tuple(lines_of(plane.lines, Kinds(np.array(ids, np.int64), types, names), origin_ns))
    return Plane(clean(plane.name), plane.id, lines, types, _stats(plane.stats, names, names))


def _stats(stats: Iterable[Message], wanted: Mapping[int, str], names: Mapping[int, str]) -> dict[str, Value]:
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
            if name in IDS:
                values[name] = int(value) % 2**64
            elif value >= 0:  # sizes, counts and rates
                values[name] = value
    return values


def _value(stat: Message, names: Mapping[int, str]) -> Value | None:
    kind = stat.WhichOneof("value")
    if kind is None:
        return None
    value: Value = getattr(stat, kind)
    if kind == "ref_value":
        return names.get(int(value), "")
    return clean(value) if isinstance(value, str) else value
