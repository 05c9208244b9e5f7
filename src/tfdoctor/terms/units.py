"""Numbers with units, so that nothing formats a figure without knowing what it is."""

from collections.abc import Callable
from enum import StrEnum

from tfdoctor.terms.json_form import Number
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

    value: Number
    unit: Unit


def _of(unit: Unit) -> Callable[[float], Quantity]:
    return lambda value: Quantity(float(value), unit)


ms = _of(Unit.MILLISECONDS)
ratio = _of(Unit.RATIO)  # 1.0 is the whole
count = _of(Unit.COUNT)  # of steps, calls, files or other items
nbytes = _of(Unit.BYTES)  # not KiB or MiB
bandwidth = _of(Unit.BYTES_PER_SECOND)
flop_rate = _of(Unit.FLOP_PER_SECOND)
examples_rate = _of(Unit.EXAMPLES_PER_SECOND)
usd = _of(Unit.US_DOLLARS)
flops_per_dollar = _of(Unit.FLOP_PER_DOLLAR)
watts = _of(Unit.WATTS)
joules = _of(Unit.JOULES)  # 3600 are a watt-hour
grams_co2 = _of(Unit.GRAMS_CO2)  # greenhouse gases with the same effect
