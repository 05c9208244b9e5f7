"""Readers of JSON values: numbers, texts, lists and mappings, which `typed` combines into dataclasses.

A reader returns the typed value, adds the places of values that it leaves out to the list of faults, and
raises `Misfit` if the value itself has another type.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from math import inf
from typing import Any

from tfdoctor.recording.field_types import Bounds
from tfdoctor.terms.text import as_read, name

DIGITS = 19  # Digits of the greatest number of 64 bits
NOT_FINITE = ("inf", "-inf", "nan")  # How a constant is written for which JSON has no number
# Converts a JSON value; the list collects the places of values that were left out.
Reader = Callable[[object, list[str]], Any]


class Misfit(Exception):  # noqa: N818 - damage in a file, caught where the file is read
    """A value has another type than its field."""


def scalar(kind: type, bounds: Bounds) -> Reader:
    """Return the reader of a number within bounds, of a text, of one of several words or of a truth value."""
    if kind is int:
        return lambda value, _: _int(value, bounds)
    if kind is float:
        return lambda value, _: _float(value, bounds)
    if issubclass(kind, Enum):
        return lambda value, _: _word(kind, value)
    of_kind = exact(kind)
    return (lambda value, faults: as_read(of_kind(value, faults))) if kind is str else of_kind


def exact(kind: type) -> Reader:
    """Return the reader of a text or a truth value as it is."""

    def of_kind(value: object, _: list[str]) -> Any:  # noqa: ANN401 - of the kind
        if type(value) is not kind:
            raise Misfit
        return value

    return of_kind


def _word(kind: type[Enum], value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise Misfit from None


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


def constant(value: object, _: list[str]) -> float:
    """Read a number of any size, which may be infinite or NaN."""
    return float(value) if value in NOT_FINITE else _float(value, Bounds(-inf, inf))


def loose_int(bounds: Bounds) -> Reader:
    """Return the reader of an integer that may be written as 32.0 or "32"."""

    def loose(value: object, _: list[str]) -> int:
        if isinstance(value, str) and value.isdecimal() and len(value) < DIGITS:
            return _int(int(value), bounds)
        if isinstance(value, float) and value.is_integer():
            return _int(int(value), bounds)
        return _int(value, bounds)

    return loose


def either(readers: list[Reader]) -> Reader:
    """Return the reader of null or a value of one of several types, tried in order."""
    if len(readers) == 1:
        return _nullable(readers[0])

    def first_fitting(value: object, faults: list[str]) -> object:
        for read_as in readers:
            try:
                return read_as(value, faults)
            except Misfit:
                continue
        raise Misfit

    return _nullable(first_fitting)


def _nullable(inner: Reader) -> Reader:
    return lambda value, faults: None if value is None else inner(value, faults)


def complete_list(inner: Reader) -> Reader:
    """Return the reader of a list of numbers, texts or lists, which is useless without one of its entries."""

    def entries(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise Misfit
        return tuple([inner(item, faults) for item in value])

    return entries


def object_list(inner: Reader, *, drops: bool) -> Reader:
    """Return the reader of a list of objects; `drops` leaves damaged entries out instead of raising Misfit."""

    def entries(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise Misfit
        objects = []
        for position, item in enumerate(value):
            before = len(faults)
            try:
                objects.append(inner(item, faults))
            except Misfit:
                if not drops:
                    raise
                faults.append("")
            if len(faults) > before:
                prefix(faults, before, f"[{position}]")
        return tuple(objects)

    return entries


def fixed_list(readers: list[Reader]) -> Reader:
    """Return the reader of a list of known length, in which each entry has its own type."""

    def entries(value: object, faults: list[str]) -> tuple[object, ...]:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise Misfit
        return tuple(inner(item, faults) for inner, item in zip(readers, value, strict=True))

    return entries


def mapping(inner: Reader) -> Reader:
    """Return the reader of an object with any keys; damaged values are left out."""

    def entries(value: object, faults: list[str]) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise Misfit
        typed = {}
        for key, item in value.items():
            try:
                typed[as_read(key)] = inner(item, faults)
            except Misfit:
                faults.append(f".{name(key)}")
        return typed

    return entries


def prefix(faults: list[str], first: int, place: str) -> None:
    """Prefix the faults from position `first` on with the place that contains them."""
    faults[first:] = [f"{place}{fault}" for fault in faults[first:]]
