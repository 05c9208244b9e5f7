"""Fields decoded as columns are those that protobuf reads."""

import math
from mmap import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.trace import wire
from tfdoctor.trace.fields import DamagedError, MessageBytes

INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 127, 128, 2**55, 2**56, 2**62, -1])


def message(name: str, fields: dict[str, Any]) -> bytes:
    content: bytes = getattr(wire.xplane_pb2(), name)(**fields).SerializeToString()
    return content


def decoded(*messages: bytes) -> list[dict[int, int]]:
    """Return for each message the 64 bits of its fields by number."""
    lengths = np.array([len(one) for one in messages], np.int64)
    ends = lengths.cumsum()
    values: list[dict[int, int]] = [{} for _ in messages]
    content = b"".join(messages) + bytes(wire.PADDING)
    pages = mmap(-1, len(content))
    pages[:] = content
    for fields in MessageBytes.of(pages).fields(ends - lengths, ends):
        rows = zip(fields.message.tolist(), fields.number.tolist(), fields.bits.tolist(), strict=True)
        for at, number, bits in rows:
            values[at][number] = bits
    return values


@given(st.lists(st.fixed_dictionaries({}, optional={"metadata_id": INT64, "duration_ps": INT64}), max_size=6))
def test_varints_are_read(rows: list[dict[str, int]]) -> None:
    number = wire.field_numbers("XEvent")
    expected = [{number[name]: value % 2**64 for name, value in row.items() if value} for row in rows]
    assert decoded(*(message("XEvent", row) for row in rows)) == expected


@given(st.lists(st.floats() | st.just(math.nan), max_size=6))
def test_doubles_are_read(values: list[float]) -> None:
    number = wire.field_numbers("XStat")["double_value"]
    rows = decoded(*(message("XStat", {"double_value": value}) for value in values))
    assert [row[number] for row in rows] == np.array(values).view(np.uint64).tolist()


def test_a_double_that_looks_like_an_endless_varint_is_read() -> None:
    """Its bytes all say that they go on, as do those of the text after it."""
    double = b"\x11" + b"\xff" * 8
    assert decoded(double + b"\x2a\x04" + b"\xff" * 4)[0][2] == 2**64 - 1


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x08",  # a tag without a value
        b"\x08" + b"\xff" * 10 + b"\x01",  # eleven bytes
        b"\x08\xff",  # a value that goes on after its message
        b"\x22\x05ab",  # a text that is longer than its message
        b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # and one of 2**64 bytes
        b"\x11\x00\x00",  # a double of two bytes
        b"\x0b",  # a group
        b"\x0e\x00",  # a type that does not exist
        b"\x00\x00",  # a field without a number
    ],
)
def test_what_is_no_message_is_refused(damaged: bytes) -> None:
    with pytest.raises(DamagedError):
        decoded(b"\x08\x01", damaged, b"\x08\x01")
