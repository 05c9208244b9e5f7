"""Reads JSON into dataclasses, once, where a file is read.

Values that do not fit their type are left out and their places noted: a field keeps its default, a list loses
the entry. `Misfit` is raised only if a required value is missing or damaged. null and {} mean the default.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tfdoctor.recording.field_types import CONSTANT, EXACT, LOOSE, WHOLE, Bounds
from tfdoctor.recording.readers import (
    Misfit,
    Reader,
    complete_list,
    constant,
    either,
    exact,
    fixed_list,
    loose_int,
    mapping,
    object_list,
    prefix,
    scalar,
)
from tfdoctor.terms.record import Record

__all__ = ["Misfit", "read"]

T = TypeVar("T")


def read(kind: type[T], data: object, faults: list[str]) -> T:
    """Return the dataclass that a JSON value describes.

    Raises:
        Misfit: the value is not an object, or lacks a field without a default.
    """
    return cast("T", _reader(cast("Any", kind))(data, faults))


@cache
def _reader(kind: Any) -> Reader:  # noqa: ANN401 - any annotation
    """Return the reader for a type: a dataclass, or an annotation of its fields."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, TypeVar):  # of a line, which files have by its path and number
        return _reader(tuple[str, int])
    if is_dataclass(kind) or is_dataclass(origin):
        return _object(cast("type", origin or kind))
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return either([_reader(part) for part in parts if part is not NoneType])
    if origin is tuple:
        return _tuple(parts)
    return mapping(_reader(parts[1])) if origin is Mapping else scalar(kind, Bounds())


def _tuple(parts: tuple[Any, ...]) -> Reader:
    readers = [_reader(part) for part in parts if part is not Ellipsis]
    if parts[-1] is not Ellipsis:
        return fixed_list(readers)
    if is_dataclass(get_origin(parts[0]) or parts[0]):
        return object_list(readers[0], drops=True)
    return complete_list(readers[0])


def _annotated(kind: Any, markers: tuple[object, ...]) -> Reader:  # noqa: ANN401 - any annotation
    if WHOLE in markers:
        parts = [part for part in (kind, *get_args(kind)) if get_origin(part) is tuple]
        return object_list(_reader(get_args(parts[0])[0]), drops=False)
    if EXACT in markers:
        return exact(kind)
    if CONSTANT in markers:
        return constant
    bounds = next((marker for marker in markers if isinstance(marker, Bounds)), Bounds())
    return loose_int(bounds) if LOOSE in markers else scalar(kind, bounds)


class _FieldReader(Record):
    """How to read one field of a dataclass; `strict`: a damaged value damages the whole object."""

    name: str
    key: str
    read: Reader
    required: bool
    strict: bool

    @classmethod
    def of(cls, field: Field[Any], key: str, hint: Any) -> "_FieldReader":  # noqa: ANN401 - any annotation
        required = field.default is MISSING and field.default_factory is MISSING
        strict = required or WHOLE in getattr(hint, "__metadata__", ())
        return cls(field.name, key, _reader(hint), required, strict)


def _object(kind: type) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    keys = getattr(kind, "__struct_encode_fields__", [field.name for field in fields(kind)])
    named = zip(fields(kind), keys, strict=True)
    readers = [_FieldReader.of(field, key, hints[field.name]) for field, key in named]

    def record(value: object, faults: list[str]) -> object:
        if not isinstance(value, Mapping):
            raise Misfit
        try:
            return kind(**_values(readers, value, faults))
        except ValueError:  # values that contradict each other
            raise Misfit from None

    return record


def _values(readers: list[_FieldReader], data: Mapping[str, object], faults: list[str]) -> dict[str, object]:
    """Return the values of a dataclass's fields, without those that keep their defaults."""
    values: dict[str, object] = {}
    for field in readers:
        item, before = data.get(field.key), len(faults)
        if not field.required and (item is None or item == {}):
            continue
        try:
            values[field.name] = field.read(item, faults)
        except Misfit:
            if field.strict:
                raise
            faults.append("")
        if len(faults) > before:
            prefix(faults, before, f".{field.key}")
    return values
