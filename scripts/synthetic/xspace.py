"""Builds XSpace messages: interning of names, typed stats, events in order."""

from collections.abc import Mapping

from tfdoctor.trace.wire import Message, xplane_pb2

US = 1_000_000
"""Picoseconds in a microsecond."""

MS = 1_000_000_000
"""Picoseconds in a millisecond."""

T0_NS = 1_000_000
"""When every line starts, since the start of the profile."""

STARTED_NS = 1_700_000_000_000_000_000
"""When the profile started (Unix)."""


class Ref(str):
    """A string to be interned: stored as ``ref_value``, as the real writers do."""

    __slots__ = ()


class U64(int):
    """An integer to be stored as ``uint64_value``."""

    __slots__ = ()


Stat = int | float | str | bytes
Stats = Mapping[str, Stat]


class Space:
    """One XSpace under construction."""

    def __init__(self, host: str = "vm") -> None:
        self.proto: Message = xplane_pb2().XSpace(hostnames=[host])

    def plane(self, name: str, number: int = 0, **stats: Stat) -> "Plane":
        """Add a plane."""
        return Plane(self.proto.planes.add(name=name, id=number), stats)

    def serialized(self) -> bytes:
        """Return the same bytes for the same content, the lines' events sorted, outer first."""
        for line in (line for plane in self.proto.planes for line in plane.lines):
            line.events.sort(key=lambda event: (event.offset_ps, -event.duration_ps))
        data: bytes = self.proto.SerializeToString(deterministic=True)
        return data


class Plane:
    """One XPlane; names of events and stats are added on first use."""

    def __init__(self, proto: Message, stats: Stats) -> None:
        self.proto = proto
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._add(proto, stats)

    def line(self, number: int, name: str) -> "Line":
        """Add a thread or a stream."""
        return Line(self, self.proto.lines.add(id=number, name=name, timestamp_ns=T0_NS))

    def type(self, name: str, display_name: str = "", **stats: Stat) -> int:
        """Return the id of a kind of event; its stats are those of its first use."""
        if name not in self._events:
            key = self._events[name] = len(self._events) + 1
            metadata = self.proto.event_metadata[key]
            metadata.id, metadata.name, metadata.display_name = key, name, display_name
            self._add(metadata, stats)
        return self._events[name]

    def _add(self, owner: Message, stats: Stats) -> None:
        for name, value in stats.items():
            stat = owner.stats.add(metadata_id=self._stat(name))
            if isinstance(value, Ref):
                stat.ref_value = self._stat(value)
            elif isinstance(value, U64):
                stat.uint64_value = value
            else:
                setattr(stat, FIELDS[type(value)], value)

    def _stat(self, name: str) -> int:
        if name not in self._stats:
            key = self._stats[name] = len(self._stats) + 1
            self.proto.stat_metadata[key].id, self.proto.stat_metadata[key].name = key, str(name)
        return self._stats[name]


FIELDS = {int: "int64_value", float: "double_value", str: "str_value", bytes: "bytes_value"}
"""The field of an XStat for a Python value."""


class Line:
    """One thread or stream."""

    def __init__(self, plane: Plane, proto: Message) -> None:
        self.plane = plane
        self.proto = proto

    def add(self, kind: str | int, start: int, duration: int, **stats: Stat) -> None:
        """Add an event of a type (by id, or by name) from start (ps on the line) on."""
        if isinstance(kind, str):
            kind = self.plane.type(kind, _display_name(kind))
        event = self.proto.events.add(metadata_id=kind, offset_ps=start, duration_ps=duration)
        self.plane._add(event, stats)  # noqa: SLF001 - a line is a part of its plane


def _display_name(name: str) -> str:
    """Return an operation's type for "name:Type", and for an iterator its last stage."""
    if name.startswith("Iterator::"):
        last = name.rpartition("::")[2]
        return "" if name.count("::") == 1 else f"Iterator::{last}"
    return name.rpartition(":")[2] if ":" in name and "::" not in name else ""
