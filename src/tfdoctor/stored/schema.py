"""The JSON Schema of report.json (2020-12), from the types of a diagnosis and the markers in their annotations."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from tfdoctor.diagnosis import PARTS, Diagnosis, Edit, Result, Timeline
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.stored.converter import form_of, has, has_default, key_of, markers, words_of
from tfdoctor.stored.results import COMPUTED, MEASURED_BY_SOME, SHOWN
from tfdoctor.terms.json_form import (
    LONGEST_MS,
    MOST,
    NUMBER,
    AllOf,
    Json,
    NotEmpty,
    OfPattern,
    OmitDefault,
    OneUnit,
    Signed,
    Within,
)
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Finding, Healthy, Place, Remedy, Severity

Schema = dict[str, Json]

SCHEMA = 1  # Fields are only ever added; a field that changes its meaning makes it 2
LIFTED = ("breakdown_ms", "untraced_breakdown_ms")  # Fields of the steps that stand beside them in a report
# Fields that a result has in every report.
FIRST_FIELDS = ("rule", "topic", "outcome", "summary", "reason", "evidence", "remedies")

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCALARS: Mapping[type, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0, "maximum": MOST},
    float: dict(NUMBER),
    NoneType: {"type": "null"},
}

TEXT, FLAG, COUNT = SCALARS[str], SCALARS[bool], SCALARS[int]
TEXTS: Schema = {"type": "array", "items": TEXT}


def schema(*, reads: bool = False) -> Schema:
    """Return the schema of the object that ``report.json`` is; of what ``reads``, those of all versions."""
    of = Schemas(reads=reads)
    report = of.record(Diagnosis)
    steps = of.known["StepsSummary"]
    for name in LIFTED:
        del steps["properties"][name]
        steps["required"] = [one for one in steps["required"] if one != name]
    report["properties"] |= {
        "schema": {"const": SCHEMA},
        **dict.fromkeys(LIFTED, AllOf(PARTS).schema),
        **({} if reads else {"unknown": TEXTS, "entries": {"type": "array", "items": ENTRY}}),
    }
    report["required"] = sorted({*report["required"], "schema", *(() if reads else LIFTED)})
    of.known["PhaseRow"]["properties"]["share"] = dict(NUMBER)
    return {"$schema": DIALECT, "title": "tfdoctor report", **report, "$defs": of.known}


# A finding with those that show the same fault: `report.entries` makes it of the results.
ENTRY: Schema = {
    "type": "object",
    "properties": {
        "rule": TEXT,
        **dict.fromkeys(("symptoms", "same", "included_in"), TEXTS),
        **dict.fromkeys(("in_together", "in_run_together"), FLAG),
    },
    "required": ["rule", "symptoms", "same", "included_in", "in_together"],
}


class Schemas:
    """The schemas of types by their names.

    What ``reads`` takes reports of earlier versions, which lack fields, and phases of later ones.
    """

    def __init__(self, *, reads: bool) -> None:
        self.reads = reads
        self.known: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:  # noqa: ANN401 - any annotation
        """Return the schema of a type: of a dataclass, a reference to it."""
        if get_origin(kind) is not None:
            return self._compound(get_origin(kind), get_args(kind))
        if is_dataclass(kind):
            return self._reference(kind)
        if kind is Phase and self.reads:
            return TEXT
        return {"enum": words_of(kind)} if issubclass(kind, Enum) else SCALARS[kind]

    def _compound(self, origin: Any, parts: tuple[Any, ...]) -> Schema:  # noqa: ANN401 - same
        if origin is Annotated:
            return self._marked(parts[0], parts[1:])
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(part) for part in parts]}
        if origin is tuple:
            return self._list(parts)
        return {"type": "object", "additionalProperties": self.of(parts[1])}

    def _list(self, parts: tuple[Any, ...]) -> Schema:
        if parts[-1] is Ellipsis:
            return {"type": "array", "items": self.of(parts[0])}
        number = len(parts)
        items = [self.of(part) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": number, "maxItems": number}

    def _reference(self, kind: Any) -> Schema:  # noqa: ANN401 - a dataclass
        name = kind.__name__
        if name not in self.known:
            special = {Result: self._result, Timeline: self._timeline}
            self.known[name] = special[kind]() if kind in special else self.record(kind)
        return {"$ref": f"#/$defs/{name}"}

    def record(self, kind: type) -> Schema:
        """Return the schema of a dataclass."""
        properties: Schema = {}
        required: list[str] = []
        for field, of, marked in markers(kind):
            form, key = form_of(marked), key_of(field, marked)
            properties[key] = self._marked(of, marked) if form is None else dict(form.schema)
            needed = not (has_default(field) if self.reads else has(marked, OmitDefault))
            if has(marked, OneUnit):
                properties["unit"] = {"enum": [unit.value for unit in Unit]}
                required += ["unit"] if needed and "unit" not in required else []
            if needed:
                required.append(key)
        return {"type": "object", "properties": properties, "required": required}

    def _marked(self, kind: Any, marked: tuple[Any, ...]) -> Schema:  # noqa: ANN401 - any annotation
        """Return the schema of a type with markers in its annotation."""
        if has(marked, OneUnit):
            return dict(NUMBER)
        limits = next((one.schema for one in marked if isinstance(one, Within | OfPattern)), {})
        return {**self.of(kind), **limits, **({"minItems": 1} if has(marked, NotEmpty) else {})}

    def _result(self) -> Schema:
        """Return the schema of a rule's result, which is flat."""
        verdicts = [self.record(kind)["properties"] for kind in (Finding, Healthy)]
        stated = {name: of for verdict in verdicts for name, of in verdict.items() if name not in SHOWN}
        outcomes = ["finding", "remark", "healthy", "not-applicable", "errored"]
        always: Schema = {
            **dict.fromkeys(("rule", "title", "summary", "reason"), TEXT),
            "topic": self.of(Topic),
            "outcome": {"enum": outcomes},
            **{name: self.of(kind) for name, kind in COMPUTED.items()},
            "severity": self.of(Severity | None),
            "known": self.of(bool | None),
            "at": self.of(Place | None),
            "evidence": verdicts[0]["evidence"],
            "remedies": {"type": "array", "items": self._remedy()},
        }
        sometimes: Schema = {
            **dict.fromkeys(("own", "general"), FLAG),
            "traceback": TEXT,
            **{name: self.of(kind) for name, kind in MEASURED_BY_SOME.items()},
            "fallbacks": self.of(tuple[Place, ...]),
            "stated": {"type": "object", "properties": stated},
        }
        needed = FIRST_FIELDS if self.reads else set(always) - {"title"}  # as in version 0.1.0
        properties = always | sometimes
        return {"type": "object", "properties": properties, "required": sorted(needed)}

    def _remedy(self) -> Schema:
        remedy, edit = self.record(Remedy), self.record(Edit)
        shown = {**edit, "properties": {**edit["properties"], "in_patch": FLAG}}
        edits = {"edit": {"anyOf": [shown, {"type": "null"}]}, "by_hand": edit}
        return {**remedy, "properties": remedy["properties"] | edits}

    def _timeline(self) -> Schema:
        row: Schema = {
            "type": "array",
            "prefixItems": [_time(least=-LONGEST_MS), _time(), COUNT, COUNT, COUNT, COUNT],
            "minItems": 5,
            "maxItems": 6,
        }
        lane: Schema = {
            "type": "object",
            "properties": {"name": TEXT, "bars": {"type": "array", "items": row}},
            "required": ["name", "bars"],
        }
        properties: Schema = {
            "step": self.of(Signed),
            "hidden": COUNT,
            "total_ms": _time(),
            **dict.fromkeys(("parts", "names"), TEXTS),
            "lanes": {"type": "array", "items": lane},
        }
        required = list(properties)
        properties["rules"] = {"type": "array", "items": TEXTS}
        return {"type": "object", "properties": properties, "required": required}


def _time(least: float = 0.0) -> Schema:
    """Return the schema of a known time, in us or ms."""
    return {"type": "number", **Within(least, LONGEST_MS).schema}
