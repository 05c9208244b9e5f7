"""Decodes the events of a plane's lines, with the stats that facts ask for, as columns: in chunks, on all cores."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.fields import Bits, MessageBytes, Places, fill
from tfdoctor.trace.model import TypeTable
from tfdoctor.trace.names import IDS, NUMERIC, WANTED
from tfdoctor.trace.stats import REAL, SIGNED, TEXT, UNSIGNED, EventStats
from tfdoctor.trace.texts import clean
from tfdoctor.trace.wire import field_numbers

CHUNK = 2**15  # Events that are decoded at once: their columns fit into the processor's cache
LIMIT = 2.0**64  # Quantities beyond are damaged and are left out
# Times beyond, 13 days, are damaged and are clipped, so that differences of starts and ends fit int64.
LIMIT_PS = 2**60
MOST_CORES = 8  # More wait for the one thread that hands out the bytes

FORMS = {
    "double_value": REAL,
    "uint64_value": UNSIGNED,
    "int64_value": SIGNED,
    "str_value": TEXT,
    "bytes_value": TEXT,
    "ref_value": TEXT,  # the name of another id
}


class Kinds(NamedTuple):
    """The types of a plane's events, with their ids in order, and the names of its stats by id."""

    type_ids: Places
    types: TypeTable
    names: Mapping[int, str]


class StatRows(NamedTuple):
    """m stats in the order of their events and names: of one event and name, the last is kept."""

    event: NDArray[np.int32]
    name: NDArray[np.uint8]
    form: NDArray[np.int8]
    bits: Bits


class EventColumns(NamedTuple):
    """The n events of the lines of a plane, in their order on disk."""

    kind: NDArray[np.int32]  # (n,), positions of the types; -1: not described
    offset_ps: NDArray[np.int64]  # (n,), from the start of the line
    duration_ps: NDArray[np.int64]  # (n,)
    stats: EventStats


def decoded(lines: Sequence[Sequence[bytes]], kinds: Kinds) -> EventColumns:
    """Return the events of lines: a chunk may be of many lines, because a trace may have thousands.

    Raises:
        DamagedError: they are no events.
    """
    count, all_events, first = sum(map(len, lines)), chain.from_iterable(lines), 0
    chunks = iter(lambda: [*islice(all_events, CHUNK)], [])
    kind, times_ps = np.empty(count, np.int32), np.empty((2, count), np.int64)
    reader, rows, texts = _Reader(kinds), list[StatRows](), dict[str | bytes, int]()
    for kind_of, times_of, stats, its_texts in _in_order(reader, chunks, count):
        last = first + len(kind_of)
        kind[first:last], times_ps[:, first:last] = kind_of, times_of
        stats.event[:] += first
        if its_texts:  # each chunk has a table of its own
            places = np.array([texts.setdefault(text, len(texts)) for text in its_texts], np.uint64)
            of_text = stats.form == TEXT
            stats.bits[of_text] = places[stats.bits[of_text].view(np.int64)]
        rows.append(stats)
        first = last
    if not rows:
        return EventColumns(kind, times_ps[0], times_ps[1], EventStats())
    event, name, form, bits = map(np.concatenate, zip(*rows, strict=True))
    stats_of_all = EventStats(reader.names, event, name, form, bits, tuple(texts))
    return EventColumns(kind, times_ps[0], times_ps[1], stats_of_all)


Decoded = tuple[NDArray[np.int32], NDArray[np.int64], StatRows, Sequence[str | bytes]]


def _in_order(reader: "_Reader", chunks: Iterable[Sequence[bytes]], count: int) -> Iterator[Decoded]:
    """Read chunks in threads, since NumPy lets go of the interpreter's lock; yield what they hold, in order."""
    cores = min(len(os.sched_getaffinity(0)), MOST_CORES)
    if count <= CHUNK or cores == 1:
        yield from map(reader.read, chunks)
        return
    with ThreadPoolExecutor(cores) as pool:
        ahead = deque[Future[Decoded]]()
        for chunk in chunks:
            ahead.append(pool.submit(reader.read, chunk))
            if len(ahead) > cores:
                yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


class _Reader:
    """Reads chunks of a plane's events."""

    def __init__(self, kinds: Kinds) -> None:
        self._type_ids, self._all = kinds.type_ids, kinds.names
        wanted = {key: name for key, name in kinds.names.items() if name in WANTED}
        self.names = tuple(sorted(set(wanted.values())))
        self._ids = np.array(sorted(wanted), np.int64)
        self._positions = np.array([self.names.index(wanted[key]) for key in sorted(wanted)], np.uint8)
        self._is_number, self._is_id = (
            np.array([name in some for name in self.names], bool) for some in (NUMERIC, IDS)
        )

    def read(self, events: Sequence[bytes]) -> Decoded:
        """Return the positions of the types, (n,), offsets and durations, (2, n), the stats and their texts."""
        buffer, number = MessageBytes.of(events), field_numbers("XEvent")
        lengths = np.fromiter(map(len, events), np.int64, len(events))
        ends, columns, stats = lengths.cumsum(), np.zeros((3, len(events)), np.int64), [np.zeros((3, 0), np.int64)]
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
        kind, times_ps = _positions(self._type_ids, columns[0]).astype(np.int32), columns[1:]
        np.clip(times_ps, -LIMIT_PS, LIMIT_PS, out=times_ps)
        np.maximum(times_ps[1], 0, out=times_ps[1])
        return kind, times_ps, *self._stats(buffer, *np.concatenate(stats, axis=1))

    def _stats(
        self, buffer: MessageBytes, event: Places, start: Places, end: Places
    ) -> tuple[StatRows, list[str | bytes]]:
        """Read the stats that begin and end at these places, without quantities that are not numbers."""
        key, field = np.zeros((2, len(event)), np.int64)
        bits, first, last = np.zeros(len(event), np.uint64), start.copy(), end.copy()
        forms, number = _forms(), field_numbers("XStat")["metadata_id"]
        for fields in buffer.fields(start, end):
            fill(key, fields, number)
            valued = forms[np.minimum(fields.number, len(forms) - 1)] >= 0
            if not valued.any():
                continue
            at = fields.message[valued]
            field[at], bits[at] = fields.number[valued], fields.bits[valued]
            first[at], last[at] = fields.start[valued], fields.end[valued]
        known = _positions(self._ids, key)
        rows = np.flatnonzero((known >= 0) & (field > 0))
        name, form, values = self._positions[known[rows]], forms[field[rows]], bits[rows]
        wrong, real = form == TEXT, form == REAL
        wrong[real] = ~(np.abs(values[real].view(np.float64)) <= LIMIT)  # NaN too
        kept = np.flatnonzero(~(wrong & self._is_number[name]))
        place = event[rows[kept]].astype(np.int32) * len(self.names) + name[kept]
        order = np.argsort(place, kind="stable")
        kept = kept[order[np.append(np.diff(place[order]) != 0, True)[: len(order)]]]
        rows, name, form, values = rows[kept], name[kept], form[kept], values[kept]
        ids = self._is_id[name]
        for row in np.flatnonzero(ids & (form == REAL)).tolist():
            values[row] = int(values[row].view(np.float64)) % 2**64
        form[ids] = UNSIGNED
        texts = self._texts(buffer.data, field[rows], values, first[rows], last[rows])
        return StatRows(event[rows].astype(np.int32), name, form, values), texts

    def _texts(self, data: bytes, field: Places, bits: Bits, start: Places, end: Places) -> list[str | bytes]:
        """Return the texts; their positions take the place of bits, and of ids that refer to names."""
        numbers, texts = field_numbers("XStat"), dict[str | bytes, int]()
        for row in np.flatnonzero(field == numbers["str_value"]).tolist():
            text = clean(data[start[row] : end[row]].decode(errors="replace"))
            bits[row] = texts.setdefault(text, len(texts))
        for row in np.flatnonzero(field == numbers["bytes_value"]).tolist():
            bits[row] = texts.setdefault(data[start[row] : end[row]], len(texts))
        refers = field == numbers["ref_value"]
        ids, which = np.unique(bits[refers], return_inverse=True)
        names = [self._all.get(key, "") for key in ids.tolist()]
        bits[refers] = np.array([texts.setdefault(name, len(texts)) for name in names], np.uint64)[which]
        return [*texts]


@cache
def _forms() -> NDArray[np.int8]:
    """Return by number how a field of a stat is to be read; -1 for one without a value, and in the last place."""
    numbers = field_numbers("XStat")
    forms = np.full(max(numbers.values()) + 2, -1, np.int8)
    forms[[numbers[value] for value in FORMS]] = list(FORMS.values())
    return forms


def _positions(ids: Places, wanted: Places) -> Places:
    """Return the positions of (n,) ids among sorted ones; -1 for those that are not there."""
    if not len(ids):
        return np.full(len(wanted), -1)
    at = np.minimum(ids.searchsorted(wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
