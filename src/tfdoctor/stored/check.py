"""Checks a value by a JSON Schema: where the first fault is, by its path in the file, and what was expected there.

It knows the keywords that ``schema`` writes. The sentences are for users, who know JSON and not Python.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

from tfdoctor.terms.json_form import Json
from tfdoctor.terms.record import Record
from tfdoctor.terms.text import shorten

LONGEST = 40  # Characters of a value that a sentence shows

Check = Callable[[Json], bool]

# The types of JSON, as sentences name them.
KINDS: Mapping[str, tuple[str, Check]] = MappingProxyType(
    {
        "null": ("null", lambda value: value is None),
        "boolean": ("true or false", lambda value: isinstance(value, bool)),
        "integer": ("a whole number", lambda value: type(value) is int),
        "number": ("a number", lambda value: type(value) in (int, float)),
        "string": ("a text", lambda value: isinstance(value, str)),
        "array": ("a list", lambda value: isinstance(value, list)),
        "object": ("an object", lambda value: isinstance(value, Mapping)),
    }
)

LIMITS: Mapping[str, tuple[str, Callable[[Json, Json], bool]]] = MappingProxyType(
    {
        "minimum": ("≥", lambda value, limit: value >= limit),
        "exclusiveMinimum": (">", lambda value, limit: value > limit),
        "maximum": ("≤", lambda value, limit: value <= limit),
    }
)


class JsonFault(Record):
    """What is wrong in a file."""

    path: str  # "results[3].saving.ms_per_step"
    what: str  # "expected a number, not a list"


class Checked:
    """Checks values by a schema, whose references are to these definitions."""

    def __init__(self, known: Mapping[str, Json]) -> None:
        self.known = known

    def faults(self, value: Json, of: Mapping[str, Json], path: str = "") -> Iterator[JsonFault]:
        """Yield the faults of a value, in the order of the schema's fields."""
        of = self._resolved(of)
        if "anyOf" in of:
            yield from self._any(value, of["anyOf"], path)
        elif not _fits(value, of):
            yield JsonFault(path, f"expected {self._words(of)}, not {_shown(value)}")
        elif isinstance(value, Mapping):
            yield from self._object(value, of, path)
        elif isinstance(value, list):
            yield from self._list(value, of, path)
        else:
            yield from _number(value, of, path)

    def _resolved(self, of: Mapping[str, Json]) -> Mapping[str, Json]:
        reference = of.get("$ref")
        return self.known[reference.rpartition("/")[2]] if reference else of

    def _any(self, value: Json, choices: list[Json], path: str) -> Iterator[JsonFault]:
        """Yield the faults by the choice that is meant: the one of this type that has most of the fields."""
        own = [one for one in map(self._resolved, choices) if _fits(value, one)]
        if not own:
            words = " or ".join(dict.fromkeys(map(self._words, choices)))
            yield JsonFault(path, f"expected {words}, not {_shown(value)}")
            return
        names = set(value) if isinstance(value, Mapping) else set()
        meant = max(own, key=lambda one: len(names & set(one.get("properties", ()))))
        yield from self.faults(value, meant, path)

    def _object(self, value: Mapping[str, Json], of: Mapping[str, Json], path: str) -> Iterator[JsonFault]:
        fields, other = of.get("properties", {}), of.get("additionalProperties")
        for name in of.get("required", ()):
            if name not in value:
                yield JsonFault(_below(path, name), "it is missing")
        for name, item in value.items():
            if (form := fields.get(name, other)) is not None:
                yield from self.faults(item, form, _below(path, name))

    def _list(self, value: list[Json], of: Mapping[str, Json], path: str) -> Iterator[JsonFault]:
        least, most = of.get("minItems", 0), of.get("maxItems", len(value))
        if not least <= len(value) <= most:
            counts = f"{least}" if least == most else f"{least} to {most}"
            words = f"of {counts}" if "maxItems" in of else "that is not empty"
            yield JsonFault(path, f"expected a list {words}, not one of {len(value)}")
            return
        forms = of.get("prefixItems") or [of.get("items", {})] * len(value)
        items = zip(value, forms, strict=False)  # a row may lack the last of its numbers
        yield from chain.from_iterable(
            self.faults(item, form, f"{path}[{at}]") for at, (item, form) in enumerate(items)
        )

    def _words(self, of: Mapping[str, Json]) -> str:
        """Return what a schema expects, in words."""
        of = self._resolved(of)
        if "description" in of:
            return str(of["description"])
        if "enum" in of:
            return f"one of {', '.join(str(word) for word in of['enum'] if word != '')}"
        if "const" in of:
            return str(of["const"])
        kinds = of["type"] if isinstance(of["type"], list) else [of["type"]]
        return " or ".join(KINDS[kind][0] for kind in kinds)


def _fits(value: Json, of: Mapping[str, Json]) -> bool:
    """Say whether a value has the type of a schema, or is among its words; its items and limits are not asked."""
    if "enum" in of:
        return value in of["enum"] and not isinstance(value, bool)
    if "const" in of:
        return type(value) is type(of["const"]) and value == of["const"]
    if "pattern" in of and isinstance(value, str) and not re.fullmatch(of["pattern"], value):
        return False
    kinds = of.get("type", [])
    return not kinds or any(KINDS[kind][1](value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _number(value: Json, of: Mapping[str, Json], path: str) -> Iterator[JsonFault]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    for keyword, (sign, holds) in LIMITS.items():
        if keyword in of and not holds(value, of[keyword]):  # never true of NaN
            what = "a whole number" if of["type"] == "integer" else "a number"
            yield JsonFault(path, f"expected {what} {sign} {of[keyword]:g}, not {_shown(value)}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Json) -> str:
    """Return a value as a sentence shows it: a short one as it is, of any other what it is."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return json.dumps(shorten(value, LONGEST))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return shorten(str(value), LONGEST) if abs(value) < 10**LONGEST else "a larger one"
