"""How the fields of a diagnosis stand in a report.json: markers in the annotations of its types.

A field without a marker has its own name there, and the form of its type; ``stored`` writes and reads by them.
"""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Protocol

from tfdoctor.terms.record import Record
from tfdoctor.terms.units import Quantity, ms

DIGITS = 9  # Significant digits: beyond them floats differ between machines and say nothing
Json = Any  # A value that JSON has


def number(value: float | None) -> float | None:
    """Return a number with the digits that mean something; None for those that JSON does not have."""
    if value is None or not math.isfinite(value):
        return None
    return _noticeable(float(f"{value:.{DIGITS}g}"))


def _noticeable(value: float) -> float:
    """Return a number, 0 for one so small that what is computed of it may be 0."""
    return 0.0 if abs(value) < LEAST else value


class Form(Protocol):
    """A marker of a field whose form in the report is not that of its type."""

    def write(self, value: Any) -> Json:  # noqa: ANN401 - the field's type
        """Return the JSON value of a field."""

    def read(self, value: Json) -> Any:  # noqa: ANN401 - same
        """Return the field of a JSON value.

        Raises:
            ValueError: the value has another form; the text says what was expected.
        """

    @property
    def schema(self) -> Mapping[str, Json]:
        """What JSON Schema says of the JSON value."""


class Named(Record):
    """The name of a field in the report."""

    name: str


class OmitDefault(Record):
    """Marks a field that the report has only where it is not its default."""


class OneUnit(Record):
    """Marks quantities of a type that share one unit: the report has their numbers, and the field ``unit``."""


class Within(Record):
    """The least and the largest number that a field can have: a report with another one is damaged."""

    least: float
    most: float

    @property
    def schema(self) -> Mapping[str, Json]:
        """What JSON Schema says of it."""
        return {"minimum": self.least, "maximum": self.most}


class OfPattern(Record):
    """The pattern of a text, and what such a text is, in words."""

    pattern: str
    what: str

    @property
    def schema(self) -> Mapping[str, Json]:
        """What JSON Schema says of it."""
        return {"pattern": self.pattern, "description": self.what}


class NotEmpty(Record):
    """Marks a list that has at least one item."""


class _Milliseconds(Record):
    def write(self, value: Quantity) -> float | None:
        return number(value.value)

    def read(self, value: Json) -> Quantity:
        return ms(expect_number(value))

    @property
    def schema(self) -> Mapping[str, Json]:
        return MILLISECONDS


class _Positive(Record):
    """A time that others are divided by."""

    none: bool = False  # whether None stands for an unknown one, instead of NaN

    def write(self, value: float | None) -> float | None:
        return number(value)

    def read(self, value: Json) -> float | None:
        if value is None and self.none:
            return None
        found = expect_number(value)
        if found <= 0:  # never true of NaN
            raise ValueError(f"expected a number above 0, not {found:g}")
        return found

    @property
    def schema(self) -> Mapping[str, Json]:
        return {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": LONGEST_MS}


class AllOf(Record):
    """Numbers by names, all of which the report has: null where nothing is known of any."""

    names: tuple[str, ...]

    def write(self, value: Mapping[str, float]) -> Json:
        """Return 0 for a name without a number, where others have one."""
        return {name: number(value.get(name, 0.0)) if value else None for name in self.names}

    def read(self, value: Json) -> dict[str, float]:
        """Return the numbers; {} where none is known."""
        found = expect(value, Mapping, "an object")
        known = any(one is not None for one in found.values())
        return {name: expect_number(found[name]) for name in self.names if known and name in found}

    @property
    def schema(self) -> Mapping[str, Json]:
        """An object with these names."""
        properties = dict.fromkeys(self.names, MILLISECONDS)
        return {"type": "object", "properties": properties, "required": list(self.names)}


class Pairs(Record):
    """Pairs of texts, which are objects with these two fields in the report."""

    first: str
    second: str

    def write(self, value: Sequence[tuple[str, str]]) -> Json:
        """Return the objects."""
        return [{self.first: one, self.second: other} for one, other in value]

    def read(self, value: Json) -> tuple[tuple[str, str], ...]:
        """Return the pairs."""
        entries = [expect(entry, Mapping, "an object") for entry in expect(value, list, "a list")]
        names = (self.first, self.second)
        return tuple((str(entry[names[0]]), str(entry[names[1]])) for entry in entries)

    @property
    def schema(self) -> Mapping[str, Json]:
        """A list of such objects."""
        names = [self.first, self.second]
        properties = {name: {"type": "string"} for name in names}
        return {"type": "array", "items": {"type": "object", "properties": properties, "required": names}}


class OrBlank(Record):
    """One of some words, "" for None."""

    words: type[Enum]

    def write(self, value: Enum | None) -> Json:
        """Return the word."""
        return value.value if value else ""

    def read(self, value: Json) -> Enum | None:
        """Return what the word stands for."""
        return self.words(value) if value else None

    @property
    def schema(self) -> Mapping[str, Json]:
        """One of the words."""
        return {"enum": ["", *(word.value for word in self.words)]}


class AsText(Record):
    """Bytes of a text, of which some may not be UTF-8: a file of the user's has any."""

    def write(self, value: bytes) -> Json:
        """Return the text, with what is not UTF-8 as single surrogates."""
        return value.decode(errors="surrogateescape")

    def read(self, value: Json) -> bytes:
        """Return the bytes."""
        found: str = expect(value, str, "a text")
        try:
            return found.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError("expected a text without halves of characters") from error

    @property
    def schema(self) -> Mapping[str, Json]:
        """A text."""
        return {"type": "string"}


# The longest time that a report can have, 30,000 years: code that multiplies times stays far from infinity.
LONGEST_MS = 1e15
# The largest other number: 30 years of the fastest computers, in floating-point operations, are a tenth of it.
LARGEST = 1e24
LEAST = 1 / LARGEST  # The smallest number that differs from 0
MOST = 2**53  # The largest whole number: JSON's readers in other languages keep no larger one exactly
# Of a number that may be unknown.
NUMBER: Mapping[str, Json] = {"type": ["number", "null"], **Within(-LARGEST, LARGEST).schema}

MILLISECONDS: Mapping[str, Json] = {"type": ["number", "null"], **Within(-LONGEST_MS, LONGEST_MS).schema}

# An address that can stand in Markdown, as ``--link`` takes it; or "".
WebAddress = Annotated[
    str,
    OfPattern(
        r"^([Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9%:=&?~#+!,;@._-][A-Za-z0-9%/:=&?~#+!,;@._-]*)?$",
        "a web address: https://...",
    ),
]

Ms = Annotated[float, Within(-LONGEST_MS, LONGEST_MS)]
Share = Annotated[float, Within(0, LARGEST)]
Amount = Annotated[float, Within(0, LARGEST)]  # Of what cannot be negative, such as bytes and FLOPs

# When something was; "" is unknown.
Moment = Annotated[
    str,
    OfPattern(
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$",
        "a moment as ISO 8601 writes it: 2026-11-28T12:50:31Z",
    ),
]

Signed = Annotated[int, Within(-MOST, MOST)]  # A whole number that may be negative, which others are not
Milliseconds = Annotated[Quantity, _Milliseconds()]  # A duration, whose field's name says the unit

Positive = Annotated[float, _Positive()]
MaybePositive = Annotated[float | None, _Positive(none=True)]

SameUnit = Annotated[Quantity, OneUnit()]
MaybeSameUnit = Annotated[Quantity | None, OneUnit()]  # Quantities of a type that share one unit


def expect(value: Json, kind: type, what: str) -> Any:  # noqa: ANN401 - of the kind
    """Return a value of a kind.

    Raises:
        ValueError: it is of another one.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"expected {what}, not {type(value).__name__}")
    return value


def expect_number(value: Json) -> float:
    """Return a number; NaN for null.

    Raises:
        ValueError: it is something else.
    """
    if value is None:
        return math.nan
    return _noticeable(float(expect(value, int if isinstance(value, int) else float, "a number")))
