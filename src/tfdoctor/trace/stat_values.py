"""Reads the stats of events: messages of a name's id and a value, by type."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace.fields import Bits, MessageBytes, Places, fill
from tfdoctor.trace.names import IDS, NUMERIC
from tfdoctor.trace.stats import REAL, SIGNED, TEXT, UNSIGNED, EventStats
from tfdoctor.trace.texts import Texts, clean
from tfdoctor.trace.wire import field_numbers

LIMIT = 2.0**64  # Quantities beyond are damaged and are left out

FORMS = {
    "double_value": REAL,
    "uint64_value": UNSIGNED,
    "int64_value": SIGNED,
    "str_value": TEXT,
    "bytes_value": TEXT,
    "ref_value": TEXT,  # the name of another id
}


@cache
def _forms() -> NDArray[np.int8]:
    """Return by number how a field of a stat is to be read; -1 for one without a value, and in the last place."""
    numbers = field_numbers("XStat")
    forms = np.full(max(numbers.values()) + 2, -1, np.int8)
    forms[[numbers[value] for value in FORMS]] = list(FORMS.values())
    return forms


class StatNames(NamedTuple):
    """The names of a plane's stats by id: all of them, and those to store on events."""

    all: Mapping[int, str]
    wanted: Mapping[int, str]


class StatReader:
    """Collects the wanted stats of a line's events."""

    def __init__(self, names: StatNames) -> None:
        self._all = names.all
        self._names = tuple(sorted(set(names.wanted.values())))
        self._ids = np.array(sorted(names.wanted), np.int64)
        self._positions = np.array([self._names.index(names.wanted[key]) for key in sorted(names.wanted)], np.int64)
        self._texts = Texts()
        self._rows: list[_Rows] = []

    def add(self, buffer: MessageBytes, event: Places, start: Places, end: Places) -> None:
        """Read the m stats that begin and end at these places of a buffer.

        Raises:
            DamagedError: they are no stats.
        """
        name, field = np.zeros((2, len(event)), np.int64)
        bits, first, last = np.zeros(len(event), np.uint64), start.copy(), end.copy()
        forms, number = _forms(), field_numbers("XStat")["metadata_id"]
        for fields in buffer.fields(start, end):
            fill(name, fields, number)
            valued = forms[np.minimum(fields.number, len(forms) - 1)] >= 0
            if not valued.any():
                continue
            at = fields.message[valued]
            field[at], bits[at] = fields.number[valued], fields.bits[valued]
            first[at], last[at] = fields.start[valued], fields.end[valued]
        known = self._ids.searchsorted(name)
        kept = np.flatnonzero((np.append(self._ids, 0)[known] == name) & (known < len(self._ids)) & (field > 0))
        field, bits = field[kept], bits[kept]
        self._read_texts(buffer.data, field, bits, first[kept], last[kept])
        self._read_references(field, bits)
        rows = _Rows(event[kept], self._positions[known[kept]], forms[field], bits)
        self._rows.append(self._numbers(rows))

    def _read_texts(self, data: bytes, field: Places, bits: Bits, start: Places, end: Places) -> None:
        """Put the positions of the texts in place of their bits."""
        numbers = field_numbers("XStat")
        for row in np.flatnonzero(field == numbers["str_value"]).tolist():
            text = data[start[row] : end[row]].decode(errors="replace")
            bits[row] = self._texts.add(clean(text))
        for row in np.flatnonzero(field == numbers["bytes_value"]).tolist():
            bits[row] = self._texts.add(data[start[row] : end[row]])

    def _read_references(self, field: Places, bits: Bits) -> None:
        """Put the positions of the names in place of the ids that refer to them."""
        refers = field == field_numbers("XStat")["ref_value"]
        ids, which = np.unique(bits[refers], return_inverse=True)
        positions = [self._texts.add(self._all.get(key, "")) for key in ids.tolist()]
        bits[refers] = np.array(positions, np.uint64)[which]

    def stats(self) -> EventStats:
        """Return what was read."""
        if not self._rows:
            return EventStats()
        event, name, form, bits = map(np.concatenate, zip(*self._rows, strict=True))
        return EventStats(self._names, event, name, form, bits, self._texts.table())

    def _numbers(self, rows: "_Rows") -> "_Rows":
        """Return the stats without quantities that are not numbers, since facts compute with them; ids unsigned."""
        real, text = rows.form == REAL, rows.form == TEXT
        wrong = text.copy()
        wrong[real] = ~(np.abs(rows.bits[real].view(np.float64)) <= LIMIT)  # NaN too
        kept = ~wrong | ~self._is_named(rows.name, NUMERIC)
        rows = rows.only(np.flatnonzero(kept))
        ids = self._is_named(rows.name, IDS)
        for row in np.flatnonzero(ids & (rows.form == REAL)).tolist():
            rows.bits[row] = int(rows.bits[row].view(np.float64)) % 2**64
        rows.form[ids] = UNSIGNED
        return rows

    def _is_named(self, name: Places, wanted: AbstractSet[str]) -> NDArray[np.bool_]:
        return np.isin(name, [at for at, text in enumerate(self._names) if text in wanted])


class _Rows(NamedTuple):
    """m stats: their events, the positions of their names, and their values."""

    event: Places
    name: Places
    form: NDArray[np.int8]
    bits: Bits

    def only(self, chosen: NDArray[np.intp]) -> "_Rows":
        """Return some of the stats."""
        return _Rows(self.event[chosen], self.name[chosen], self.form[chosen], self.bits[chosen])
