"""The JSON Schema of report.json (2020-12), and what of it a damaged report breaks, in words for users."""

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, get_args

import msgspec

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import EntryRow
from tfdoctor.terms.json_form import FORMS, Json, Number, Schema
from tfdoctor.terms.text import shorten

SCHEMA = 1  # Fields are only ever added; a field that changes its meaning makes it 2
LIFTED = ("breakdown_ms", "untraced_breakdown_ms")  # Fields of the steps that stand beside them in a report
DIALECT = "https://json-schema.org/draft/2020-12/schema"
LONGEST = 40  # Characters of a value that a sentence shows


def schema(*, reads: bool = False) -> Schema:
    """Return the schema of the object that ``report.json`` is; of what ``reads``, those of all versions.

    These lack fields, and have phases of later ones; the fields of the steps are all among these.
    """
    types = [Diagnosis, EntryRow, *(like for form in FORMS for like in form.like)]
    _, known = msgspec.json.schema_components(types, schema_hook=_of_form, ref_template="#/$defs/{name}")
    for of in known.values():
        sometimes = set()
        for name, field in of.get("properties", {}).items():
            field.pop("default", None)
            sometimes |= {name} if field.pop("sometimes", None) else set()
        if "properties" in of and not reads:
            of["required"] = [name for name in of["properties"] if name not in sometimes]
        for kind in StrEnum.__subclasses__() if "enum" in of else ():
            if sorted(kind) == of["enum"]:
                of["enum"] = list(kind)  # in the order of their definition
    report, steps = known.pop("Diagnosis"), known["StepsSummary"]
    if reads:
        known["Phase"] = {"type": "string"}
        return {**report, "required": sorted(report["required"]), "$defs": known}
    lifted = {name: steps["properties"].pop(name) for name in LIFTED}
    steps["required"] = [name for name in steps["required"] if name not in LIFTED]
    known["PhaseRow"]["properties"]["share"] = Number.schema  # type: ignore[attr-defined] # of a form
    report["properties"] |= {
        "schema": {"const": SCHEMA},
        **lifted,
        "unknown": {"type": "array", "items": {"type": "string"}},
        "entries": {"type": "array", "items": {"$ref": "#/$defs/EntryRow"}},
    }
    report["required"] = sorted({*report["required"], "schema", *LIFTED})
    return {"$schema": DIALECT, **report, "title": "tfdoctor report", "$defs": known}


def _of_form(form: Any) -> Schema:  # noqa: ANN401 - a form
    if form.schema:
        return dict(form.schema)
    shapes = [_shape(kind) for kind in form.like]
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _shape(kind: Any) -> Schema:  # noqa: ANN401 - a text, a record or a tuple of such
    if kind is str:
        return {"type": "string"}
    if get_args(kind):
        return {"type": "array", "items": _shape(get_args(kind)[0])}
    return {"$ref": f"#/$defs/{kind.__name__}"}


# The types of JSON, as sentences name them.
KINDS: Mapping[str, tuple[str, Callable[[Json], bool]]] = MappingProxyType(
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


def fault(error: str, content: Json) -> str:
    """Return what is wrong in a report, and where: msgspec's error says where, the schema what was expected."""
    what, *places = re.split(r" - at `\$(.*?)`", error)
    missing = re.match("Object missing required field `(.*)`", what)
    path = "".join(reversed(places)) + (f".{missing[1]}" if missing else "")
    absent = missing is not None
    shown, of, value = "", _choices({"$ref": "Diagnosis"}), content
    for name, at in re.findall(r"\.(\w+)|\[(\d+|\.{3})\]", path):
        names = set(value) if isinstance(value, Mapping) else ()
        fields = [{*one.get("properties", ())} for one in of]
        meant = of[max(range(len(of)), key=lambda at: (name in fields[at], len(fields[at].intersection(names))))]
        lacking = [one for one in meant.get("required", ()) if isinstance(value, Mapping) and one not in value]
        if lacking:  # said first
            shown, absent = f"{shown}.{lacking[0]}".lstrip("."), True
            break
        if at.isdigit():
            of = _choices(meant["prefixItems"][int(at)] if "prefixItems" in meant else meant["items"])
            shown, value = f"{shown}[{at}]", value[int(at)]
        else:
            of = _choices(meant.get("properties", {}).get(name) or meant["additionalProperties"])
            # Of a mapping msgspec does not say which key.
            key = name or next(key for key, item in value.items() if _expected(of, item))
            shown, value = f"{shown}.{key}".lstrip("."), value.get(key)
    shown = re.sub(rf"^steps\.(?=({'|'.join(LIFTED)})\b)", "", shown)
    words = what if what.startswith("expected the") else _expected(of, value)
    return f"{shown}: {'it is missing' if absent else words}"


@cache
def _definitions() -> Mapping[str, Schema]:
    report = schema(reads=True)
    return {**report["$defs"], "Diagnosis": report}


def _choices(of: Schema) -> list[Schema]:
    if "$ref" in of:
        return _choices(_definitions()[of["$ref"].rpartition("/")[2]])
    return [one for part in of["anyOf"] for one in _choices(part)] if "anyOf" in of else [of]


def _expected(choices: list[Schema], value: Json) -> str:
    """Return what is expected in place of a value; "" where nothing else is."""
    fitting = next((of for of in choices if _fits(value, of)), None)
    if fitting is None:
        words = " or ".join(dict.fromkeys(word for of in choices for word in _words(of)))
        return f"expected {words}, not {_shown(value)}"
    if isinstance(value, list):
        least, most = fitting.get("minItems", 0), fitting.get("maxItems", len(value))
        counts = f"{least}" if least == most else f"{least} to {most}"
        words = f"of {counts}" if "maxItems" in fitting else "that is not empty"
        return "" if least <= len(value) <= most else f"expected a list {words}, not one of {len(value)}"
    for keyword, (sign, holds) in LIMITS.items() if type(value) in (int, float) else ():
        if keyword in fitting and not holds(value, fitting[keyword]):  # never true of NaN
            what = "a whole number" if fitting["type"] == "integer" else "a number"
            return f"expected {what} {sign} {fitting[keyword]:g}, not {_shown(value)}"
    return ""


def _fits(value: Json, of: Schema) -> bool:
    """Say whether a value has the type of a schema, or is among its words; its items and limits are not asked."""
    if "enum" in of:
        return value in of["enum"] and not isinstance(value, bool)
    if "pattern" in of and isinstance(value, str) and not re.search(of["pattern"], value):
        return False
    return any(KINDS[kind][1](value) for kind in _kinds(of))


def _kinds(of: Schema) -> list[str]:
    return of["type"] if isinstance(of["type"], list) else [of["type"]]


def _words(of: Schema) -> list[str]:
    if "pattern" in of:
        return [of["description"]]
    if "enum" in of:
        return [f"one of {', '.join(str(word) for word in of['enum'] if word != '')}"]
    return [KINDS[kind][0] for kind in _kinds(of)]


def _shown(value: Json) -> str:
    """Return a value as a sentence shows it: a short one as it is, of any other what it is."""
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shorten(str(value), LONGEST) if abs(value) < 10**LONGEST else "a larger one"
    return json.dumps(shorten(value, LONGEST) if isinstance(value, str) else value)
