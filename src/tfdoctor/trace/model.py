"""A trace as columns: a trace contains planes, a plane holds lines, a line holds arrays.

All times are int64 picoseconds since the start of the profile (int64 holds 106 days).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfdoctor.terms.record import Record, field
from tfdoctor.trace.stats import EventStats, Value

NO_TASKS: NDArray[np.int64] = np.zeros((0, 2), np.int64)


class EventType(Record):
    """The data that all events of one name share (XSpace's event_metadata)."""

    name: str
    display_name: str = ""  # the op type, for TensorFlow operations: "Conv2D"
    stats: Mapping[str, Value] = field(default_factory=dict)  # on TPU: category, flops, source, ...


class TypeTable(tuple[EventType, ...]):  # noqa: SLOT001 - it keeps what it was asked
    """The types of a plane's events, which thousands of lines may have in common.

    Each test is asked once. So it must not be a function that is made for the call.
    """

    def passing(self, test: Callable[[Any], object], *, named: bool = False) -> NDArray[np.bool_]:
        """Return (types,) whether each type, or the name of each, passes a test."""
        masks: dict[object, NDArray[np.bool_]] = self.__dict__.setdefault("masks", {})
        if test not in masks:
            masks[test] = np.array([bool(test(one.name if named else one)) for one in self], bool)
        return masks[test]


class Event(Record):
    """An event as an object, from the columns of its line."""

    type: EventType
    start_ps: int
    duration_ps: int
    stats: Mapping[str, Value]

    @property
    def name(self) -> str:
        """The name of its type, such as "model/conv/Conv2D:Conv2D"."""
        return self.type.name

    @property
    def end_ps(self) -> int:
        """When it ended, in picoseconds from the start of the trace."""
        return self.start_ps + self.duration_ps


class Line(Record, eq=False):
    """A thread or stream with n events, sorted by start, outer before inner."""

    name: str
    id: int
    types: TypeTable  # of the plane; ``kind`` indexes it
    kind: NDArray[np.int32]  # (n,)
    start_ps: NDArray[np.int64]  # (n,)
    duration_ps: NDArray[np.int64]  # (n,)
    stats: EventStats = field(default_factory=EventStats)
    tasks_ps: NDArray[np.int64] = field(default_factory=lambda: NO_TASKS)  # (m, 2): tasks of a pool's thread

    def __len__(self) -> int:
        return len(self.kind)

    def event(self, index: int) -> Event:
        """Return one event as an object."""
        start_ps, duration_ps = int(self.start_ps[index]), int(self.duration_ps[index])
        return Event(self.types[self.kind[index]], start_ps, duration_ps, self.stats.of(index))

    def events(self) -> Iterator[Event]:
        """Yield events as objects; slow, so only for short lines or a few events."""
        return (self.event(index) for index in range(len(self)))


class Plane(Record, eq=False):
    """A host or device: "/host:CPU", "/device:GPU:0", "/device:TPU:1"."""

    name: str
    id: int
    lines: tuple[Line, ...]
    types: TypeTable
    stats: Mapping[str, Value] = field(default_factory=dict)


class Trace(Record, eq=False):
    """The trace of one host's profiler."""

    planes: tuple[Plane, ...]
    hostnames: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()  # of the profiler: "Failed to load libcupti ..."
    warnings: tuple[str, ...] = ()  # of the profiler: "Detected GPU events dropped ..."
    damage: tuple[str, ...] = ()  # what could not be read
    started_unix_ns: int | None = None  # absent in traces of TensorFlow 2.3 and 2.4
    sampled: "Trace | None" = None  # all of it, where the profiler ran on after what this trace holds

    @property
    def host(self) -> Plane | None:
        """The plane of the host's threads, or None."""
        return next((plane for plane in self.planes if plane.name == "/host:CPU"), None)

    @property
    def host_lines(self) -> tuple[Line, ...]:
        """The host's threads; none if the trace has no host."""
        return self.host.lines if self.host else ()

    def host_events(self, name: str) -> Iterator[Event]:
        """Yield the host's events of a name that few events have, thread by thread."""
        types = self.host.types if self.host else ()
        keys = [key for key, kind in enumerate(types) if kind.name == name]
        for line in self.host_lines if keys else ():
            yield from map(line.event, np.flatnonzero(np.isin(line.kind, keys)).tolist())

    def devices(self, kind: str) -> tuple[Plane, ...]:
        """Return the planes of one kind of device: "GPU" or "TPU"."""
        device = re.compile(rf"/device:{kind}:\d+")
        return tuple(plane for plane in self.planes if device.fullmatch(plane.name))
