"""Decodes the fields of many protobuf messages at once, as columns.

Python takes half a microsecond for each field of a message; a large trace has 20 million of them. Here the k-th
fields of n messages are one column, so that time is spent in NumPy. The format:
https://protobuf.dev/programming-guides/encoding/
"""

import ctypes
import mmap
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.terms.record import Record

Places = NDArray[np.int64]
Bits = NDArray[np.uint64]
Offsets = NDArray[np.integer[Any]]  # In a file: narrow where it has less than 4 GB

# Gives back what was freed, where the C library has it: of many small pieces it keeps as much as a trace takes.
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", bool)

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # Wire types. Groups, 3 and 4, are deprecated.
FIXED = {FIXED_64: 8, FIXED_32: 4}  # The bytes of values of a fixed length

STRIDE = 2**13  # Bytes from one guess to the next
HOPS = 64
APART = 256  # Bytes before the end of a line that may be other fields, so that nothing is guessed there

WORD = 8
LONGEST = 10  # Bytes of a word, and of a varint
FIRST_OF_TWO = 0x80  # The smallest first byte of a varint of more than one
ENDLESS = 2**48  # A length beyond the end of any message

CONTINUED = np.uint64(0x8080808080808080)
# The first bit of each byte of a word says whether the varint goes on; the others are its value.
PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)

FIRST_GOES_ON, ONE_BYTE = np.uint64(0x80), np.uint64(0x7F)

# Three steps that join groups of 7, 14 and 28 bits: those that stay, those that move down, and how far.
FOLDS = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


class DamagedError(Exception):
    """The bytes are not a message."""


class Fields(Record, eq=False):
    """One field of each of m messages: its value, or for bytes where they begin and end."""

    message: Places  # (m,) positions of the messages
    number: Places  # (m,) field numbers
    bits: Bits  # (m,) values; doubles as they are stored
    start: Places  # (m,) of the bytes; equal to ``end`` for other types
    end: Places


def fill(column: NDArray[np.int64], fields: Fields, number: int) -> None:
    """Put the values of the fields of one number into the rows of their messages."""
    chosen = fields.number == number
    if chosen.all():
        column[fields.message] = fields.bits.view(np.int64)
    elif chosen.any():
        column[fields.message[chosen]] = fields.bits[chosen].view(np.int64)


class MessageBytes(Record, eq=False):
    """Bytes, of which any eight that follow each other can be read as a word."""

    data: mmap.mmap  # with PADDING after the messages
    octets: NDArray[np.uint8]  # (bytes,)
    words: Bits  # (bytes,) overlapping

    @classmethod
    def of(cls, data: mmap.mmap) -> Self:
        """Take messages that follow each other, with PADDING."""
        words = np.ndarray((len(data) - WORD + 1,), "<u8", data, strides=(1,))
        return cls(data, np.frombuffer(data, np.uint8), words)

    def give_back(self, at: int, end: int) -> None:
        """Let go of the whole pages of what is not read any more."""
        first = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE
        if (pages := (end - first) // mmap.PAGESIZE) > 0:
            self.data.madvise(mmap.MADV_DONTNEED, first, pages * mmap.PAGESIZE)

    def walk(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the number of each field of one message, where it begins, where its value does, and where it ends.

        Raises:
            DamagedError: a field ends after the message, or has a type that does not exist.
        """
        while at < end:
            tag, value = self._varint(at)
            wire, after = tag & 7, value + FIXED.get(tag & 7, 0)
            if wire == BYTES:
                length, value = self._varint(value)
                after = value + length
            elif wire == VARINT:
                _, after = self._varint(value)
            if after > end or not tag >> 3 or wire not in {VARINT, BYTES, *FIXED}:
                raise DamagedError
            yield tag >> 3, at, value, after
            at = after

    def _varint(self, at: int) -> tuple[int, int]:
        value = 0
        for place, octet in enumerate(self.data[at : at + LONGEST]):
            value |= (octet & 0x7F) << 7 * place
            if octet < FIRST_OF_TWO:
                return value, at + place + 1
        raise DamagedError

    def repeated(self, tag: int, at: Places, end: Places) -> tuple[Offsets, Offsets, Places, list[int]]:
        """Find the messages of a field that follow each other in n others: each says where the next one is.

        Returns where each message begins and ends, before which of them each of the n ends, and where the last one
        does; -1 of one in which a guess met none.
        """
        starts = self._guessed(tag, at, end)
        of = at.searchsorted(starts, "right") - 1
        stop = np.minimum(np.append(starts[1:], len(self.data)), end[of])
        narrow: type[np.integer[Any]] = np.uint32 if len(self.data) < 2**32 else np.int64
        live, now, met, found = np.arange(len(starts)), starts, starts.copy(), list[tuple[Offsets, ...]]()
        while len(live):
            goes_on = now < stop[live]
            goes_on[goes_on] = self.octets[now[goes_on]] == tag
            live, now = live[goes_on], now[goes_on]
            length, begins = self.octets[now + 1].astype(np.int64), now + 2
            long = np.flatnonzero(length >= FIRST_OF_TWO)
            bits, begins[long] = self._varints(now[long] + 1)
            length[long] = np.minimum(bits, np.uint64(len(self.data)))
            met[live] = now = begins + length
            found.append((live, begins.astype(narrow), now.astype(narrow)))
        counts = sum((np.bincount(hop[0], minlength=len(starts)) for hop in found), np.zeros_like(starts))
        ends, places = counts.cumsum(), np.zeros((2, counts.sum()), narrow)
        for hop, (chain, *both) in enumerate(found):
            places[:, (ends - counts)[chain] + hop] = both
        found.clear()
        TRIM(0)
        last = np.append(of[1:] != of[:-1], True)
        after_last = met[last]
        after_last[of[~last & (met != stop)]] = -1
        return places[0], places[1], ends[last], after_last.tolist()

    def _guessed(self, tag: int, at: Places, end: Places) -> Places:
        """Return where messages begin: the first ones, and others, so that thousands are followed at once.

        Of a guess, nearly always a message is met within HOPS.
        """
        guesses = [np.arange(first + STRIDE, last - APART, STRIDE) for first, last in zip(at, end, strict=True)]
        now, most = np.concatenate(guesses), np.repeat(end - APART, list(map(len, guesses)))
        for _ in range(HOPS):
            length, after = self._varints(now + 1)
            is_one = (self.octets[now] == tag) & (length < np.uint64(STRIDE))
            now = np.minimum(np.where(is_one, after + length.astype(np.int64), now + 1), most)
        return np.unique(np.concatenate((at, now[now < most])))

    def fields(self, start: Places, end: Places) -> Iterator[Fields]:
        """Yield the first field of each of n messages, then the second of those that have one, and so on.

        Raises:
            DamagedError: a field ends after its message, or has a type that does not exist.
        """
        message = np.flatnonzero(start < end)
        at = start[message]
        while len(message):
            found, at = self._next(message, at, end[message])
            yield found
            left = at < end[message]
            message, at = (message, at) if left.all() else (message[left], at[left])

    def _next(self, message: Places, at: Places, limit: Places) -> tuple[Fields, Places]:
        first = self.octets[at]
        if (first < FIRST_OF_TWO).all():  # as of most messages
            wire, number, at = (first & 7).astype(np.int64), (first >> 3).astype(np.int64), at + 1
        else:
            tag, after = self._varints(at)
            if (after > at + LONGEST).any():
                raise DamagedError
            wire, number, at = (tag & np.uint64(7)).astype(np.int64), (tag >> np.uint64(3)).astype(np.int64), after
        bits, after = self._varints(at)
        end = after
        if wire.any():  # VARINT is 0
            is_bytes, is_64, is_32 = (wire == kind for kind in (BYTES, FIXED_64, FIXED_32))
            known = is_bytes | is_64 | is_32 | (wire == VARINT)
            if not known.all() or (bits[is_bytes] > len(self.data)).any():
                raise DamagedError
            if (fixed := is_64 | is_32).any():
                words, bits = self.words[at], bits.copy()
                bits[is_64], bits[is_32] = words[is_64], words[is_32] & np.uint64(2**32 - 1)
                after = np.where(fixed, at + 8 * is_64 + 4 * is_32, after)
            end = after + np.where(is_bytes, bits, np.uint64(0)).astype(np.int64)
        if (end > limit).any() or (number < 1).any():
            raise DamagedError
        return Fields(message, number, bits, after, end), end

    def _varints(self, at: Places) -> tuple[Bits, Places]:
        """Return the varints at these places, and where they end."""
        words = self.words[at]
        if not (words & FIRST_GOES_ON).any():
            return words & ONE_BYTE, at + 1
        stop = ~words & CONTINUED
        stop &= np.negative(stop)  # the last byte's bit alone; 0 where there are more than 8 bytes
        values = words & PAYLOAD & (stop ^ (stop - np.uint64(1)))
        highest = (stop - np.uint64(1)).max()
        for stay, move, by in FOLDS[: 1 + int(highest >= 2**15) + int(highest >= 2**31)]:
            values = (values & stay) | ((values & move) >> by)
        # The exponent of a power of two: 7 for one byte, 15 for two.
        length = ((stop.astype(np.float64).view(np.int64) >> 52) - 1023 >> 3) + 1
        if len(long := np.flatnonzero(stop == 0)):
            values[long], length[long] = self._long(values[long], at[long])
        return values, at + length

    def _long(self, low: Bits, at: Places) -> tuple[Bits, Places]:
        """Return varints of nine or ten bytes, whose first 56 bits are known, and their lengths."""
        words = self.words[at + WORD]
        ninth, tenth = words & np.uint64(0xFF), (words >> np.uint64(8)) & np.uint64(0xFF)
        goes_on = ninth >= np.uint64(0x80)
        endless = goes_on & (tenth >= np.uint64(0x80))  # or no varint: the bytes of a double, say
        high = (ninth & np.uint64(0x7F)) << np.uint64(56)
        top: Bits = np.where(goes_on, tenth << np.uint64(63), np.uint64(0))
        length: Places = np.where(endless, ENDLESS, np.where(goes_on, LONGEST, LONGEST - 1))
        return low | high | top, length
