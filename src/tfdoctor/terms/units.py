"""Numbers with units, so that nothing formats a figure without knowing what it is."""

from enum import StrEnum

from tfdoctor.terms.record import Record


class Unit(StrEnum):
    """The unit of a quantity, as the JSON report spells it."""

    MILLISECONDS = "ms"
    RATIO = "ratio"
    COUNT = "count"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    FLOP_PER_SECOND = "flop/s"
    EXAMPLES_PER_SECOND = "examples/s"
    US_DOLLARS = "usd"
    FLOP_PER_DOLLAR = "flop/usd"
    WATTS = "w"
    JOULES = "j"
    GRAMS_CO2 = "gco2"


class Quantity(Record):
    """A number with its unit; only ``humanize`` turns it into text."""

    value: float
    unit: Unit


def ms(value: float) -> Quantity:
    """Return a duration in milliseconds."""
    return Quantity(float(value), Unit.MILLISECONDS)


def ratio(value: float) -> Quantity:
    """Return a ratio: 1.0 is the whole."""
    return Quantity(float(value), Unit.RATIO)


def count(value: float) -> Quantity:
    """Return a number of steps, calls, files or other items."""
    return Quantity(float(value), Unit.COUNT)


def nbytes(value: float) -> Quantity:
    """Return an amount of memory or data in bytes, not in KiB or MiB."""
    return Quantity(float(value), Unit.BYTES)


def bandwidth(value: float) -> Quantity:
    """Return a bandwidth in bytes per second."""
    return Quantity(float(value), Unit.BYTES_PER_SECOND)


def flop_rate(value: float) -> Quantity:
    """Return floating-point operations per second."""
    return Quantity(float(value), Unit.FLOP_PER_SECOND)


def examples_rate(value: float) -> Quantity:
    """Return training examples per second."""
    return Quantity(float(value), Unit.EXAMPLES_PER_SECOND)


def usd(value: float) -> Quantity:
    """Return a price or a saving in US dollars."""
    return Quantity(float(value), Unit.US_DOLLARS)


def flops_per_dollar(value: float) -> Quantity:
    """Return floating-point operations per US dollar."""
    return Quantity(float(value), Unit.FLOP_PER_DOLLAR)


def watts(value: float) -> Quantity:
    """Return a power in watts."""
    return Quantity(float(value), Unit.WATTS)


def joules(value: float) -> Quantity:
    """Return an energy in joules; 3600 are a watt-hour."""
    return Quantity(float(value), Unit.JOULES)


def grams_co2(value: float) -> Quantity:
    """Return greenhouse gases in grams of CO2 with the same effect."""
    return Quantity(float(value), Unit.GRAMS_CO2)
