"""How values stand in a report.json: as msgspec writes and reads records, but for the forms below.

A field has its own name there and the form of its type, unless its type is a ``form``. What a report has only
where it is not the default is ``Sometimes``.
"""

import math
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import msgspec
from msgspec import NODEFAULT, Meta, Struct

_T = TypeVar("_T")
Json = Any  # A value that JSON has
Schema = dict[str, Json]

NINE_DIGITS = "%.9g"  # Significant ones: beyond them floats differ between machines and say nothing
# The longest time that a report can have, 30,000 years: code that multiplies times stays far from infinity.
LONGEST_MS = 1e15
# The largest other number: 30 years of the fastest computers, in floating-point operations, are a tenth of it.
LARGEST = 1e24
LEAST = 1 / LARGEST  # The smallest number that differs from 0
MOST = 2**53  # The largest whole number: JSON's readers in other languages keep no larger one exactly


def number(value: float | None) -> float | None:
    """Return a number with the digits that mean something; None for those that JSON does not have."""
    return None if value is None or not math.isfinite(value) else _noticeable(float(NINE_DIGITS % value))


def _noticeable(value: float) -> float:
    """Return a number, 0 for one so small that what is computed of it may be 0."""
    return 0.0 if abs(value) < LEAST else value


FORMS: list[Any] = []  # All forms that are made
ROWS: dict[type, Callable[[Any], Struct]] = {}  # What stands in a report in place of records of a type


def form(
    *kinds: type,
    read: Callable[[Json], Any],
    write: Callable[[Any], Json] | None = None,
    schema: Schema | None = None,
    like: tuple[Any, ...] = (),
) -> Any:  # noqa: ANN401 - a type that checkers do not see
    """Return the type of fields whose values, of these kinds, stand in a report otherwise than msgspec writes them.

    ``read`` raises a ValueError for what is none. The JSON Schema is that given, else that of any type ``like`` it.
    """
    name = " or ".join(kind.__name__ for kind in kinds)  # which errors show
    made = ABCMeta(name, (), {"read": staticmethod(read), "schema": schema, "like": like})
    if write:
        made.write = staticmethod(write)  # type: ignore[attr-defined] # of a form
    for kind in kinds:
        made.register(kind)
    FORMS.append(made)
    return made


def row_form(kind: Any, row: type, write: Callable[[Any], Struct], read: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - same
    """Return the form of a record that is another record, its ``row``, in a report."""
    ROWS[kind] = write
    return form(kind, read=lambda value: read(converted(value, row)), like=(row,))


def one_of(kinds: tuple[type, ...], **by_field: Any) -> Any:  # noqa: ANN401 - same
    """Return the form of one of several types, those of objects by the field that only it has, the last without."""

    def read(value: Json) -> Any:  # noqa: ANN401 - one of the kinds
        if isinstance(value, str) and str in kinds:
            return value
        if not isinstance(value, Mapping):
            raise ValueError("expected another type")  # noqa: TRY004 - msgspec adds its path
        return converted(value, next((kind for name, kind in by_field.items() if name in value), last))

    *others, last = by_field.values()
    like = tuple(one for kind in (*others, last) for one in getattr(kind, "like", (kind,)))
    return form(*kinds, read=read, like=(str, *like) if str in kinds else like)


def converted(value: Json, kind: Any) -> Any:  # noqa: ANN401 - any annotation, and a value of it
    """Return the value of a type that stands as this in a report.

    Raises:
        msgspec.ValidationError: it has another form.
    """
    return msgspec.convert(value, kind, dec_hook=_read)


def _read(special: Any, value: Json) -> Any:  # noqa: ANN401 - a form, and a value of it
    try:
        return special.read(value)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error  # to which msgspec adds the path to this value


def as_json(value: Any) -> Json:  # noqa: ANN401 - of any type
    """Return a value as a report has it."""
    kind: Any = type(value)
    return _writer(kind)(value)


@cache
def _writer(kind: Any) -> Callable[[Any], Json]:  # noqa: ANN401 - a type, which is hashable
    """Return what writes values of a type: a report may have millions of values, of few types."""
    if kind in ROWS:
        return lambda value: as_json(ROWS[kind](value))
    ways: tuple[tuple[tuple[type, ...], Callable[[Any], Json]], ...] = (
        ((Enum,), lambda value: value.value),
        ((float,), lambda value: value if math.isfinite(value) else None),
        ((tuple, list), lambda value: [as_json(item) for item in value]),
        ((Mapping,), lambda value: {key: as_json(item) for key, item in value.items()}),
        ((object,), lambda value: value),
    )
    if not issubclass(kind, Struct):
        return next(write for bases, write in ways if issubclass(kind, bases))
    fields = []  # of each its name, that in a report, what writes it, and the default that is not written
    for name, key, hint, default in columns(kind):
        marked = list(parts(hint))
        write = next((part.write for part in marked if hasattr(part, "write")), as_json)
        fields.append((name, key, write, default if OMIT in marked else NODEFAULT))

    def record(value: Struct) -> Json:
        found = {}
        for name, key, write, default in fields:
            item = getattr(value, name)
            if default is NODEFAULT or item != default:
                found[key] = write(item)
        return found

    return record


def columns(kind: Any) -> Iterator[tuple[str, str, Any, Any]]:  # noqa: ANN401 - same
    """Yield the name of each field, that in a report, its type and its default."""
    for field in msgspec.structs.fields(kind):
        made = field.default if field.default_factory is NODEFAULT else field.default_factory()
        yield field.name, field.encode_name, field.type, made


def parts(hint: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Yield an annotation with its markers, and the types of a union in it."""
    yield hint
    if hasattr(hint, "__metadata__") or NoneType in get_args(hint):
        for part in (*get_args(hint), *getattr(hint, "__metadata__", ())):
            yield from parts(part)


def _numbers(least: float, most: float = LARGEST, *, above: bool = False, known: bool = False) -> Any:  # noqa: ANN401 - a form
    """Return the form of a number within limits: null is an unknown one, NaN, unless it is always ``known``."""

    def read(value: Json) -> float:
        if value is None and not known:
            return math.nan
        inside = type(value) in (int, float) and (least < value if above else least <= value) and value <= most
        if not inside:  # as NaN
            raise ValueError(f"expected a number {'>' if above else '>='} {least:g} and <= {most:g}")
        return _noticeable(float(value))

    limits = {"exclusiveMinimum" if above else "minimum": least, "maximum": most}
    return form(float, read=read, schema={"type": "number" if known else ["number", "null"], **limits})


def pairs(first: str, second: str) -> Any:  # noqa: ANN401 - a form
    """Return the form of pairs of texts, which are objects with these two fields in a report."""
    row = msgspec.defstruct(f"{first}_{second}".title().replace("_", ""), [(first, str), (second, str)])
    rows: Any = tuple[row, ...]  # type: ignore[valid-type] # a row made here
    return form(
        tuple,
        read=lambda value: tuple(map(msgspec.structs.astuple, converted(value, rows))),
        write=lambda value: [{first: one, second: other} for one, other in value],
        like=(rows,),
    )


def _bytes_of(value: Json) -> bytes:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - same
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError("expected a text without halves of characters") from error


OMIT = Meta(extra_json_schema={"sometimes": True})
Sometimes = Annotated[_T, OMIT]  # What a report has only where it is not the default

Count = Annotated[int, Meta(ge=0, le=MOST)]
Signed = Annotated[int, Meta(ge=-MOST, le=MOST)]  # A whole number that may be negative, which others are not
# An address that can stand in Markdown, as ``--link`` takes it; or "".
WebAddress = Annotated[
    str,
    Meta(
        pattern=r"^([Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9%:=&?~#+!,;@._-][A-Za-z0-9%/:=&?~#+!,;@._-]*)?$(?!\n)",
        description="a web address: https://...",
    ),
]
# When something was; "" is unknown.
Moment = Annotated[
    str,
    Meta(
        pattern=(
            r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$(?!\n)"
        ),
        description="a moment as ISO 8601 writes it: 2026-11-28T12:50:31Z",
    ),
]

if TYPE_CHECKING:
    Number = float
    Ms = float
    Share = float
    Amount = float
    Positive = float
    Time = float
    Start = float
    Text = bytes
else:
    Number = _numbers(-LARGEST)  # Any number
    Ms = _numbers(-LONGEST_MS, LONGEST_MS)
    Share = Amount = _numbers(0)  # Of what cannot be negative, such as bytes and FLOPs
    Positive = _numbers(0, LONGEST_MS, above=True)  # A time that others are divided by
    Time, Start = _numbers(0, LONGEST_MS, known=True), _numbers(-LONGEST_MS, LONGEST_MS, known=True)  # In us or ms
    # Bytes of a text, of which some may not be UTF-8: a file of the user's has any. They are single surrogates.
    Text = form(
        bytes, read=_bytes_of, write=lambda value: value.decode(errors="surrogateescape"), schema={"type": "string"}
    )
