"""Numbers with units."""

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """The unit of a quantity, as the JSON report spells it."""

    MILLISECONDS = "ms"
    RATIO = "ratio"
    COUNT = "count"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    FLOP_PER_SECOND = "flop/s"
    US_DOLLARS = "usd"
    FLOP_PER_DOLLAR = "flop/usd"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit; only ``humanize`` turns it into text."""

    value: float
    unit: Unit


def ms(value: float) -> Quantity:
    """Return milliseconds."""
    return Quantity(float(value), Unit.MILLISECONDS)


def ratio(value: float) -> Quantity:
    """Return a ratio: 1.0 is the whole."""
    return Quantity(float(value), Unit.RATIO)


def count(value: float) -> Quantity:
    """Return a number of things."""
    return Quantity(float(value), Unit.COUNT)


def nbytes(value: float) -> Quantity:
    """Return bytes."""
    return Quantity(float(value), Unit.BYTES)


def bandwidth(value: float) -> Quantity:
    """Return bytes per second."""
    return Quantity(float(value), Unit.BYTES_PER_SECOND)


def flop_rate(value: float) -> Quantity:
    """Return floating-point operations per second."""
    return Quantity(float(value), Unit.FLOP_PER_SECOND)


def usd(value: float) -> Quantity:
    """Return US dollars."""
    return Quantity(float(value), Unit.US_DOLLARS)


def flops_per_dollar(value: float) -> Quantity:
    """Return floating-point operations per US dollar."""
    return Quantity(float(value), Unit.FLOP_PER_DOLLAR)
