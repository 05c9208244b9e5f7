"""Reads JSON into dataclasses, once, where a file is read.

What does not fit is left out and its place is noted: a value keeps its default, a list loses the entry. Only
where nothing is left to stand on does a reader raise `Misfit`. null and {} stand for the default.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

KEY = "key"
"""Metadata of a field whose key in the file is another than its name."""

WHOLE = "whole"
"""Annotates a list that is judged as a whole, such as the operations of a graph: the object that holds it is
damaged with any entry of it."""

LOOSE = "loose"
"""Annotates a whole number that numpy may have made: the file may hold 32.0 or "32" in its place."""

DIGITS = 19
"""Of the greatest number of 64 bits."""

Reader = Callable[[object, list[str]], Any]
"""From a JSON value to a typed one; adds the places of what was left out to the list."""


class Misfit(Exception):  # noqa: N818 - not a fault of ours, and never seen outside of this package
    """A value is not of the kind that is needed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number may be; beyond 64 bits none is meant."""

    least: float = -(2**63)
    most: float = 2**63 - 1


Count = Annotated[int, Bounds(least=0)]
"""A number of things, or a time in nanoseconds since 1970."""

Amount = Annotated[float, Bounds(least=0.0)]
"""A measured quantity that cannot be negative."""

Positive = Annotated[float, Bounds(least=1e-9)]
"""A measured quantity that something is divided by."""


def read(kind: type[T], data: object, faults: list[str]) -> T:
    """Return the dataclass that a JSON value describes.

    Raises:
        Misfit: it is no object, or lacks what has no default.
    """
    return cast("T", reader(cast("Any", kind))(data, faults))


@cache
def reader(kind: Any) -> Reader:  # noqa: ANN401 - any annotation
    """Return what reads values of a type: a dataclass, or what its fields are annotated with."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _object(cast("type", kind))
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return _either([reader(part) for part in parts if part is not NoneType])
    if origin is tuple:
        return _tuple(parts)
    return _mapping(reader(parts[1])) if origin is Mapping else _scalar(kind, Bounds())


def _tuple(parts: tuple[Any, ...]) -> Reader:
    readers = [reader(part) for part in parts if part is not Ellipsis]
    if parts[-1] is not Ellipsis:
        return _sequence(readers)
    return _items(readers[0], drops=True) if is_dataclass(parts[0]) else _values(readers[0])


def _annotated(kind: Any, notes: tuple[object, ...]) -> Reader:  # noqa: ANN401 - any annotation
    if WHOLE in notes:
        parts = [part for part in (kind, *get_args(kind)) if get_origin(part) is tuple]
        return _items(reader(get_args(parts[0])[0]), drops=False)
    bounds = next((note for note in notes if isinstance(note, Bounds)), Bounds())
    return _loose(bounds) if LOOSE in notes else _scalar(kind, bounds)


def _scalar(kind: type, bounds: Bounds) -> Reader:
    if kind is int:
        return lambda value, _: _int(value, bounds)
    if kind is float:
        return lambda value, _: _float(value, bounds)

    def exact(value: object, _: list[str]) -> object:
        if type(value) is not kind:
            raise Misfit
        return value

    return exact


def _int(value: object, bounds: Bounds) -> int:
    if type(value) is not int or not bounds.least <= value <= bounds.most:
        raise Misfit
    return value


def _float(value: object, bounds: Bounds) -> float:
    if type(value) is not float and type(value) is not int:
        raise Misfit
    if not bounds.least <= value <= bounds.most:  # never true of NaN
        raise Misfit
    return value


def _loose(bounds: Bounds) -> Reader:
    def loose(value: object, _: list[str]) -> int:
        if isinstance(value, str) and value.isdecimal() and len(value) < DIGITS:
            return _int(int(value), bounds)
        if isinstance(value, float) and value.is_integer():
            return _int(int(value), bounds)
        return _int(value, bounds)

    return loose


def _either(readers: list[Reader]) -> Reader:
    if len(readers) == 1:
        return _nullable(readers[0])

    def either(value: object, faults: list[str]) -> object:
        for read_as in readers:
            try:
                return read_as(value, faults)
            except Misfit:
                continue
        raise Misfit

    return _nullable(either)


def _nullable(inner: Reader) -> Reader:
    return lambda value, faults: None if value is None else inner(value, faults)


def _values(inner: Reader) -> Reader:
    """Read a list of numbers, texts or lists of them, which is of no use without any of its entries."""

    def values(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise Misfit
        return tuple([inner(item, faults) for item in value])

    return values


def _items(inner: Reader, *, drops: bool) -> Reader:
    """Read a list; `drops` leaves an entry out that does not fit, instead of giving the list up."""

    def items(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise Misfit
        found = []
        for at, item in enumerate(value):
            before = len(faults)
            try:
                found.append(inner(item, faults))
            except Misfit:
                if not drops:
                    raise
                faults.append("")
            if len(faults) > before:
                _place(faults, before, f"[{at}]")
        return tuple(found)

    return items


def _sequence(readers: list[Reader]) -> Reader:
    """Read a list of a known length, whose entries have kinds of their own."""

    def sequence(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise Misfit
        return tuple(inner(item, faults) for inner, item in zip(readers, value, strict=True))

    return sequence


def _mapping(inner: Reader) -> Reader:
    def mapping(value: object, faults: list[str]) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise Misfit
        found = {}
        for key, item in value.items():
            try:
                found[key] = inner(item, faults)
            except Misfit:
                faults.append(f".{key}")
        return found

    return mapping


def _object(kind: type) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    plan = [
        (one.name, one.metadata.get(KEY, one.name), reader(hints[one.name]), *_needs(one, hints))
        for one in fields(kind)
    ]

    def record(value: object, faults: list[str]) -> object:
        if not isinstance(value, Mapping):
            raise Misfit
        found = {}
        for name, key, inner, required, whole in plan:
            item, before = value.get(key), len(faults)
            if not required and (item is None or item == {}):
                continue
            try:
                found[name] = inner(item, faults)
            except Misfit:
                if required or whole:
                    raise
                faults.append("")
            if len(faults) > before:
                _place(faults, before, f".{key}")
        return kind(**found)

    return record


def _needs(field: Field[Any], hints: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether a value must be there, and whether it must fit where it is there."""
    required = field.default is MISSING and field.default_factory is MISSING
    return required, WHOLE in getattr(hints[field.name], "__metadata__", ())


def _place(faults: list[str], first: int, where: str) -> None:
    """Put a place before those that were found within it."""
    faults[first:] = [f"{where}{fault}" for fault in faults[first:]]
