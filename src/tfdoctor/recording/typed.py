"""Reads JSON into records, once, where a file is read: msgspec decodes it, leniently.

Values that do not fit their type are left out and their places noted: a field keeps its default, a list loses
the entry. `Misfit` is raised only if a required value is missing or damaged. null and {} mean the default.
"""

import gc
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from tfdoctor.terms.text import as_read, name

T = TypeVar("T")

Misfit = ValidationError

MOST = 2**63 - 1  # The greatest number of 64 bits: a larger one fits no field but CONSTANT

# Marks a list that needs all its entries, such as the operations of a graph: a damaged entry damages the object
# that holds the list.
WHOLE = "whole"
LOOSE = "loose"  # Marks an integer that numpy may have made: the file may contain 32.0 or "32" in its place

Count = Annotated[int, Meta(ge=0, le=MOST)]  # A number of things, or a time in nanoseconds since 1970
Amount = Annotated[float, Meta(ge=0.0)]  # A measured quantity that cannot be negative
Positive = Annotated[float, Meta(ge=1e-9)]  # A measured quantity that other quantities are divided by

# Entries of a file whose texts are no names to show, such as the words of a command to run: other texts are read as
# names, on one line and with an end.
EXACT = ("argv", "command", "cwd", "lines", "outcome")
# A number of the program's own, of any size; JSON has none for these texts.
CONSTANT, NOT_FINITE = "scalar", ("inf", "-inf", "nan")

UNFIT = object()  # Fits no field
_fields = cache(fields)


def read(kind: type[T], data: object, faults: list[str]) -> T:
    """Return the record that a JSON value describes.

    Raises:
        Misfit: the value is not an object, or lacks a field without a default.
    """
    collects = gc.isenabled()
    gc.disable()  # a value of JSON has no circles, and looking for them takes twice the time of all else here
    try:
        fitting: T = _fitting(kind, _plain(data, as_read, EXACT), faults, "")
    except RecursionError as error:
        raise Misfit from error
    finally:
        if collects:
            gc.enable()
    return fitting


def _plain(value: Any, text: Callable[[str], str], exact: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - of JSON
    """Return a value with texts as names, without null and {}, and with UNFIT for numbers that no field has."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | tuple):
        return [_plain(item, text) for item in value]
    if isinstance(value, Mapping):
        return {
            as_read(key): _constant(item) if key == CONSTANT else _plain(item, str if key in exact else text)
            for key, item in value.items()
            if item is not None and item != {}
        }
    return value if not isinstance(value, int | float) or -MOST - 1 <= value <= MOST else UNFIT


def _constant(value: Any) -> Any:  # noqa: ANN401 - same
    if value in NOT_FINITE:
        return float(value)
    return UNFIT if value != value else value  # noqa: PLR0124 - NaN, of which JSON has no text


def _fitting(kind: Any, value: Any, faults: list[str], place: str) -> Any:  # noqa: ANN401 - any annotation
    """Return a value as its kind, without the parts that do not fit.

    Raises:
        Misfit: nothing is left of it.
    """
    with suppress(Misfit):
        return convert(value, kind)
    bare, of, parts, markers = _opened(kind)
    if LOOSE in markers:
        return convert(value, kind, strict=False)
    if isinstance(value, Mapping) and of is Mapping:
        items = {key: _or_fault(parts[1], item, faults, f"{place}.{name(key)}") for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not UNFIT}
    if isinstance(value, Mapping) and issubclass(of, Struct):
        return _record(bare, value, faults, place)
    if isinstance(value, list) and of is tuple and issubclass(_opened(parts[0])[1], Struct):
        read_item = _fitting if WHOLE in markers else _or_fault
        found = [read_item(parts[0], item, faults, f"{place}[{at}]") for at, item in enumerate(value)]
        return tuple(item for item in found if item is not UNFIT)
    raise Misfit


def _or_fault(kind: Any, value: Any, faults: list[str], place: str) -> Any:  # noqa: ANN401 - same
    """Return a value as its kind; UNFIT, and its place as a fault, where it does not fit."""
    try:
        return _fitting(kind, value, faults, place)
    except Misfit:
        faults.append(place)
        return UNFIT


def _record(kind: Any, value: Mapping[str, Any], faults: list[str], place: str) -> Any:  # noqa: ANN401 - same
    values = {}
    for one in _fields(kind):
        if one.encode_name in value or one.required:
            part, item = f"{place}.{one.encode_name}", value.get(one.encode_name)
            strict = one.required or WHOLE in get_args(one.type)
            fit = (_fitting if strict else _or_fault)(one.type, item, faults, part)
            if fit is not UNFIT:
                values[one.name] = fit
    try:
        return kind(**values)
    except ValueError:  # values that contradict each other
        raise Misfit from None


@cache
def _opened(kind: Any) -> tuple[Any, type, tuple[Any, ...], tuple[object, ...]]:  # noqa: ANN401 - same
    """Return a kind without None and markers, its class (object: one of several), its parts and the markers."""
    markers: tuple[object, ...] = ()
    while get_origin(kind) is Annotated or (NoneType in get_args(kind) and len(get_args(kind)) == len("XN")):
        kind, markers = get_args(kind)[0], (*markers, *get_args(kind)[1:])
    of = get_origin(kind) or kind
    return kind, of if isinstance(of, type) else object, get_args(kind), markers
