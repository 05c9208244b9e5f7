"""Numbers with units, so that nothing formats a figure without knowing what it is."""

from collections.abc import Callable
from enum import StrEnum
from types import NoneType
from typing import Any, get_args

from msgspec import NODEFAULT, Struct, defstruct

from tfdoctor.terms.json_form import Number, columns, parts, row_form
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


def one_unit(kind: Any) -> Any:  # noqa: ANN401 - same
    """Return the form of a record whose quantities share one unit: a report has numbers, and the field ``unit``."""
    made: list[tuple[str, Any, Any]] = []
    shared = []
    for name, key, hint, default in columns(kind):
        if Quantity in parts(hint):
            shared.append(name)
            hint = Number | None if NoneType in get_args(hint) else Number  # noqa: PLW2901 - of the row
        made.append((key, hint, default))
    row = defstruct(kind.__name__, [*made, ("unit", Unit, NODEFAULT)], kw_only=True)
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))

    def write(value: Any) -> Struct:  # noqa: ANN401 - of the kind
        found = {key: getattr(value, name) for name, key in names.items()}
        known = {names[name]: getattr(value, name) for name in shared}
        numbers = {key: quantity and quantity.value for key, quantity in known.items()}
        return row(**{**found, **numbers, "unit": known[names[shared[0]]].unit})

    def read(found: Any) -> Any:  # noqa: ANN401 - a row
        values = {name: getattr(found, key) for name, key in names.items()}
        amounts = {name: Quantity(values[name], found.unit) for name in shared if values[name] is not None}
        return kind(**{**values, **amounts})

    return row_form(kind, row, write, read)
