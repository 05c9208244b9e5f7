"""Traces with little in them: lines, planes and steps of which one is left, and types that no event has."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

Message = Any

MARKER = "train"
"""The name of the events around steps."""


def one_event(space: Message, random: Random) -> None:
    """Leave one event of a line."""
    line = _line(space, random)
    if line is not None:
        keep(line.events, [random.choice(line.events)])


def no_event(space: Message, random: Random) -> None:
    """Leave a line without events."""
    line = _line(space, random)
    if line is not None:
        keep(line.events, [])


def one_line(space: Message, random: Random) -> None:
    """Leave one line of a plane."""
    planes = [plane for plane in space.planes if len(plane.lines)]
    if planes:
        plane = random.choice(planes)
        keep(plane.lines, [random.choice(plane.lines)])


def one_plane(space: Message, random: Random) -> None:
    """Leave one plane."""
    if len(space.planes):
        keep(space.planes, [random.choice(space.planes)])


def one_step(space: Message, random: Random) -> None:
    """Leave the events of one step, if any is marked."""
    steps = [
        span
        for plane in space.planes
        for line in plane.lines
        for event, span in _timed(line)
        if plane.event_metadata[event.metadata_id].name == MARKER
    ]
    if not steps:
        return
    begin, end = random.choice(steps)
    for plane in space.planes:
        for line in plane.lines:
            keep(line.events, [event for event, (at, _) in _timed(line) if begin <= at < end])


def no_event_of_a_type(space: Message, random: Random) -> None:
    """Remove all events of a type, which stays in the plane's table, as if they lay outside of the steps."""
    line = _line(space, random)
    if line is None:
        return
    kind = random.choice(line.events).metadata_id
    for other in (other for plane in space.planes for other in plane.lines if line in plane.lines):
        keep(other.events, [event for event in other.events if event.metadata_id != kind])


Change = Callable[[Message, Random], None]

CHANGES: tuple[Change, ...] = (
    one_event, no_event, one_line, one_plane, one_step, no_event_of_a_type,
)  # fmt: skip


def keep(repeated: Message, kept: Iterable[Message]) -> None:
    """Leave only some of the messages of a repeated field."""
    copies = [type(message).FromString(message.SerializeToString()) for message in kept]
    del repeated[:]
    repeated.extend(copies)


def _line(space: Message, random: Random) -> Message | None:
    """Return a line with events, if there is one."""
    lines = [line for plane in space.planes for line in plane.lines if len(line.events)]
    return random.choice(lines) if lines else None


def _timed(line: Message) -> Iterable[tuple[Message, tuple[int, int]]]:
    """Yield the events of a line with their starts and ends, in ps."""
    for event in line.events:
        begin = line.timestamp_ns * 1000 + event.offset_ps
        yield event, (begin, begin + event.duration_ps)
