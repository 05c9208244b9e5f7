"""Decodes the events of a plane's lines, with the stats that facts ask for, as columns: in chunks, on all cores."""

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.fields import TRIM, Bits, MessageBytes, Offsets, Places, fill
from tfdoctor.trace.model import TypeTable
from tfdoctor.trace.names import IDS, NOISE, NUMERIC, WANTED, clean
from tfdoctor.trace.stats import REAL, SIGNED, TEXT, UNSIGNED, EventStats
from tfdoctor.trace.wire import field_numbers

CHUNK = 2**15  # Events that are decoded at once: their columns fit into the processor's cache
LIMIT = 2.0**64  # Quantities beyond are damaged and are left out
# Times beyond, 13 days, are damaged and are clipped, so that differences of starts and ends fit int64.
LIMIT_PS = 2**60
# Events without a duration, at which a thread of a pool begins (1) and ends (-1) a task.
TASK = {f"{NOISE}StartRegion": 1, f"{NOISE}StopRegion": -1}
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


class Columns(NamedTuple):
    """The n events of some lines that are no noise and of a described type, in their order on disk.

    Stats are in the order of their events and names: of one event and name, the last is kept.
    """

    row: NDArray[np.int32]  # (n,), positions among all events
    kind: NDArray[np.int32]  # (n,), positions of the types
    offset_ps: NDArray[np.int64]  # (n,), from the start of the line
    duration_ps: NDArray[np.int64]  # (n,)
    tasks: NDArray[np.int64]  # (3, k): of the events of TASK their rows, 1 or -1, and offsets
    stat_event: NDArray[np.int32]  # (m,), of these n
    stat_name: NDArray[np.uint8]
    stat_form: NDArray[np.int8]
    stat_bits: Bits


Chunk = tuple[Columns, Sequence[str | bytes]]


def decoded(content: MessageBytes, start: Offsets, length: Offsets, kinds: Kinds) -> tuple[Columns, EventStats]:
    """Return the n events of some lines: a chunk may be of many lines, because a trace may have thousands.

    Their bytes are given back, so that a trace is not in memory twice.
    ``start``, (n,), and ``length`` say where they are.

    Raises:
        DamagedError: they are no events.
    """
    reader, parts = _Reader(content, kinds), [list[Any]() for _ in Columns._fields]
    texts, first, count = dict[str | bytes, int](), 0, 0
    for columns, its_texts in _in_order(reader, start, length):
        columns.row[:] += first
        columns.tasks[0] += first
        columns.stat_event[:] += count
        if its_texts:  # each chunk has a table of its own
            places = np.array([texts.setdefault(text, len(texts)) for text in its_texts], np.uint64)
            of_text = columns.stat_form == TEXT
            columns.stat_bits[of_text] = places[columns.stat_bits[of_text].view(np.int64)]
        for part, column in zip(parts, columns, strict=True):
            part.append(column)
        if len(start):
            content.give_back(*start[[first, min(first + CHUNK, len(start)) - 1]].tolist())
        first, count = first + CHUNK, count + len(columns.row)
    whole = Columns(*map(_joined, parts))
    return whole, EventStats(reader.names, *whole[5:], texts=tuple(texts))


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join columns, and let go of them: so only one of those of a large trace is there twice."""
    whole = np.concatenate(parts, axis=-1)
    parts.clear()
    TRIM(0)
    return whole


def _in_order(reader: "_Reader", start: Offsets, length: Offsets) -> Iterator[Chunk]:
    """Read chunks in threads, since NumPy lets go of the interpreter's lock; yield what they hold, in order."""
    cores = min(len(os.sched_getaffinity(0)), MOST_CORES)
    if len(start) <= CHUNK:
        yield reader.read(start, length)
        return
    with ThreadPoolExecutor(cores) as pool:
        ahead = deque[Future[Chunk]]()
        for first in range(0, len(start), CHUNK):
            part = slice(first, first + CHUNK)
            ahead.append(pool.submit(reader.read, start[part], length[part]))
            if len(ahead) > cores:
                yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


class _Reader:
    """Reads chunks of a plane's events."""

    def __init__(self, content: MessageBytes, kinds: Kinds) -> None:
        self._content = content
        self._type_ids, self._all = kinds.type_ids, kinds.names
        wanted = {key: name for key, name in kinds.names.items() if name in WANTED}
        self.names = tuple(sorted(set(wanted.values())))
        self._ids = np.array(sorted(wanted), np.int64)
        self._positions = np.array([self.names.index(wanted[key]) for key in sorted(wanted)], np.uint8)
        self._is_number, self._is_id = (
            np.array([name in some for name in self.names], bool) for some in (NUMERIC, IDS)
        )
        names = [kind.name for kind in kinds.types]
        # The last is for types that are not described.
        self._is_kept = np.array([*(not name.startswith(NOISE) for name in names), False])
        numbers = field_numbers("XStat")
        # By number; -1 for a field without a value, and in the last place.
        self._forms = np.full(max(numbers.values()) + 2, -1, np.int8)
        self._forms[[numbers[value] for value in FORMS]] = list(FORMS.values())
        self._task = np.array([*(TASK.get(name, 0) for name in names), 0], np.int8)

    def read(self, start: Offsets, length: Offsets) -> Chunk:
        """Return the columns of a chunk, and the texts of its stats."""
        starts, number = start.astype(np.int64), field_numbers("XEvent")
        columns, stats = np.zeros((3, len(starts)), np.int64), [np.zeros((3, 0), np.int64)]
        for fields in self._content.fields(starts, starts + length):
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
        offset_ps, duration_ps = columns[1:]
        np.clip(offset_ps, -LIMIT_PS, LIMIT_PS, out=offset_ps)
        np.clip(duration_ps, 0, LIMIT_PS, out=duration_ps)
        kind = _positions(self._type_ids, columns[0]).astype(np.int32)
        kept = self._is_kept[kind]
        row, tasks = np.flatnonzero(kept), np.flatnonzero(task := self._task[kind])
        all_stats = np.concatenate(stats, axis=1)
        of_kept = np.compress(kept[all_stats[0]], all_stats, axis=1)  # of the noise as many are not read
        *stat, texts = self._stats(kept.cumsum() - 1, *of_kept)
        about = np.stack((tasks, task[tasks], offset_ps[tasks]))
        return Columns(row.astype(np.int32), kind[row], offset_ps[row], duration_ps[row], about, *stat), texts

    def _stats(self, position: Places, event: Places, start: Places, end: Places) -> tuple[Any, ...]:
        """Read the stats at these places: their columns and texts, without quantities that are not numbers.

        Facts compute with them. ``position`` is that of each event among those kept.
        """
        key, field = np.zeros((2, len(event)), np.int64)
        bits, first, last = np.zeros(len(event), np.uint64), start.copy(), end.copy()
        forms, number = self._forms, field_numbers("XStat")["metadata_id"]
        for fields in self._content.fields(start, end):
            fill(key, fields, number)
            valued = forms[np.minimum(fields.number, len(forms) - 1)] >= 0
            if not valued.any():
                continue
            at = fields.message[valued]
            field[at], bits[at] = fields.number[valued], fields.bits[valued]
            first[at], last[at] = fields.start[valued], fields.end[valued]
        event, known = position[event], _positions(self._ids, key)
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
        texts = self._texts(field[rows], values, first[rows], last[rows])
        return event[rows].astype(np.int32), name, form, values, texts

    def _texts(self, field: Places, bits: Bits, start: Places, end: Places) -> list[str | bytes]:
        """Return the texts; their positions take the place of bits, and of ids that refer to names."""
        data, numbers, texts = self._content.data, field_numbers("XStat"), dict[str | bytes, int]()
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


def _positions(ids: Places, wanted: Places) -> Places:
    """Return the positions of (n,) ids among sorted ones; -1 for those that are not there."""
    if not len(ids):
        return np.full(len(wanted), -1)
    at = np.minimum(ids.searchsorted(wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)
