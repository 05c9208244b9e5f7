"""Decodes the events of lines into columns."""

from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.fields import MessageBytes, Places, fill
from tfdoctor.trace.stat_values import StatNames, StatReader
from tfdoctor.trace.stats import EventStats
from tfdoctor.trace.wire import field_numbers

CHUNK = 2**15  # Events that are decoded at once: their columns fit into the processor's cache


class EventColumns(NamedTuple):
    """The n events of the lines of a plane, in their order on disk."""

    line: NDArray[np.int64]  # (n,), positions of the lines
    type_id: NDArray[np.int64]  # (n,), of the plane's event_metadata
    offset_ps: NDArray[np.int64]  # (n,), from the start of the line
    duration_ps: NDArray[np.int64]  # (n,)
    stats: EventStats


def decoded(lines: Sequence[Sequence[bytes]], names: StatNames) -> EventColumns:
    """Return the events of lines: a chunk may be of many lines, because a trace may have thousands.

    Raises:
        DamagedError: they are no events.
    """
    counts = [len(line) for line in lines]
    columns, reader = np.zeros((3, sum(counts)), np.int64), StatReader(names)
    first, all_events = 0, chain.from_iterable(lines)
    while events := [*islice(all_events, CHUNK)]:
        buffer = MessageBytes.of(events)
        event, start, end = _chunk(buffer, events, columns[:, first : first + CHUNK])
        reader.add(buffer, event + first, start, end)
        first += len(events)
    type_id, offset_ps, duration_ps = columns
    line = np.repeat(np.arange(len(counts)), counts)
    return EventColumns(line, type_id, offset_ps, duration_ps, reader.stats())


def _chunk(
    buffer: MessageBytes, events: Sequence[bytes], columns: NDArray[np.int64]
) -> tuple[Places, Places, Places]:
    """Fill the columns, (3, n), and return where the m stats are: (m,) events, starts and ends."""
    number = field_numbers("XEvent")
    lengths = np.fromiter(map(len, events), np.int64, len(events))
    ends, stats = lengths.cumsum(), [np.zeros((3, 0), np.int64)]
    for fields in buffer.fields(ends - lengths, ends):
        of_stats = fields.number == number["stats"]
        if of_stats.all():  # as in all rounds but the first three
            stats.append(np.stack((fields.message, fields.start, fields.end)))
            continue
        for column, name in zip(columns, ("metadata_id", "offset_ps", "duration_ps"), strict=True):
            fill(column, fields, number[name])
        # A number of occurrences takes the place of the offset.
        columns[1, fields.message[fields.number == number["num_occurrences"]]] = 0
        if of_stats.any():
            places = (fields.message, fields.start, fields.end)
            stats.append(np.stack([place[of_stats] for place in places]))
    event, start, end = np.concatenate(stats, axis=1)
    return event, start, end
