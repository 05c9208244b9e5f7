"""The stats of a line's events as columns: a large trace has millions, and a fact asks for a few names."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.terms.record import Record, field

Value = int | float | str | bytes  # The value of a stat. Iterator and producer ids are unsigned, modulo 2**64.
# How the 64 bits of a value are to be read; those of a text are its position in a table.
REAL, UNSIGNED, SIGNED, TEXT = range(4)
MOST = 2.0**62  # Larger reals do not fit into an int64

Events = NDArray[np.int64]
Narrow = NDArray[np.integer[Any]]  # As few bytes as its values need


class EventStats(Record, eq=False):
    """m stats of the n events of a line; each event has a name at most once."""

    names: tuple[str, ...] = ()  # that the stats have
    event: Narrow = field(default_factory=lambda: np.zeros(0, np.int32))  # (m,), sorted
    name: Narrow = field(default_factory=lambda: np.zeros(0, np.uint8))  # (m,), in names; of an event, sorted
    form: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))  # (m,)
    bits: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))  # (m,)
    texts: Sequence[str | bytes] = ()
    # What was asked for before: facts ask for the same few names, of each of thousands of lines.
    _integers: dict[str, tuple[Events, NDArray[np.int64]]] = field(default_factory=dict)

    def of(self, event: int) -> Mapping[str, Value]:
        """Return the stats of one event."""
        first, last = self._bounds(event, event + 1)
        values = self._decoded(slice(first, last))
        names = self.name[first:last].tolist()
        return {self.names[name]: value for name, value in zip(names, values, strict=True)}

    def having(self, name: str) -> Events:
        """Return the (k,) events that have a stat, in order."""
        return self._events(self._rows(name))

    def values(self, name: str) -> tuple[Events, list[Value]]:
        """Return the (k,) events that have a stat, and their k values."""
        rows = self._rows(name)
        return self._events(rows), self._decoded(rows)

    def integers(self, name: str) -> tuple[Events, NDArray[np.int64]]:
        """Return the (k,) events that have a stat that is a number, and their (k,) values."""
        if name not in self._integers:
            rows = self._rows(name)
            rows = rows[self.form[rows] != TEXT]
            bits, real = self.bits[rows], self.form[rows] == REAL
            values = bits.view(np.int64)
            if real.any():
                values = values.copy()
                values[real] = np.clip(bits[real].view(np.float64), -MOST, MOST).astype(np.int64)
            self._integers[name] = self._events(rows), values
        return self._integers[name]

    def values_of(self, name: str, events: Events) -> list[Value | None]:
        """Return the values of (n,) events; None for an event without one."""
        rows = self._rows(name)
        at, found = _among(self._events(rows), events)
        values = iter(self._decoded(rows[at[found]]))
        return [next(values) if known else None for known in found.tolist()]

    def ids(self, name: str) -> tuple[Events, NDArray[np.uint64]]:
        """Return the (k,) events that have an id, and their (k,) values."""
        events, values = self.integers(name)
        return events, values.view(np.uint64)

    def ids_of(self, name: str, events: Events) -> NDArray[np.uint64]:
        """Return the ids of (n,) events; 0 for an event without one."""
        having, ids = self.ids(name)
        at, found = _among(having, events)
        return np.where(found, np.append(ids, np.uint64(0))[at], np.uint64(0))

    def moved(self, position: NDArray[np.integer[Any]]) -> Self:
        """Return the stats of (n,) events at other positions, -1 for none."""
        event = position[self.event]
        rows = np.flatnonzero(event >= 0)
        event = event[rows]
        if (event[1:] < event[:-1]).any():
            order = np.argsort(event, kind="stable")
            rows, event = rows[order], event[order]
        return type(self)(self.names, event, self.name[rows], self.form[rows], self.bits[rows], self.texts)

    def part(self, events: slice) -> Self:
        """Return the stats of some events, of which the first then counts as the first of all."""
        rows = slice(*self._bounds(events.start, events.stop))
        event = self.event[rows] - events.start
        return type(self)(self.names, event, self.name[rows], self.form[rows], self.bits[rows], self.texts)

    def _bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return where the stats of the events from ``first`` to before ``last`` are."""
        begin, end = self.event.searchsorted(np.array((first, last), self.event.dtype)).tolist()
        return begin, end

    def _events(self, rows: NDArray[np.intp]) -> Events:
        return self.event[rows].astype(np.int64)

    def _rows(self, name: str) -> NDArray[np.intp]:
        if name not in self.names:
            return np.zeros(0, np.intp)
        return np.flatnonzero(self.name == self.names.index(name))

    def _decoded(self, rows: slice | NDArray[np.intp]) -> list[Value]:
        column, forms = self.bits[rows], self.form[rows].tolist()
        bits: list[int] = column.tolist()
        if (kinds := {*forms}) == {TEXT}:
            return [self.texts[at] for at in bits]
        if kinds == {UNSIGNED}:
            return [*bits]
        readings = column.view(np.float64).tolist(), bits, column.view(np.int64).tolist()
        return [self.texts[bits[row]] if form == TEXT else readings[form][row] for row, form in enumerate(forms)]


def _among(having: Events, events: Events) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where (n,) events are among sorted ones, and whether they are there."""
    at = having.searchsorted(events)
    return at, np.append(having, -1)[at] == events
