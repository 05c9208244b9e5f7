"""The JSON Schema of report.json (2020-12), from the types of a diagnosis and the markers in their annotations."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from tfdoctor.diagnosis import PARTS, Diagnosis, Edit, Result, Timeline
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.stored.converter import form_of, has, key_of, markers, words_of
from tfdoctor.stored.report import LIFTED, SCHEMA
from tfdoctor.stored.results import COMPUTED, SHOWN
from tfdoctor.terms.json_form import NUMBER, AllOf, Json, OmitDefault, OneUnit
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Finding, Healthy, Place, Remedy, Severity

Schema = dict[str, Json]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCALARS: Mapping[type, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: dict(NUMBER),
    NoneType: {"type": "null"},
}

TEXT, FLAG, COUNT = SCALARS[str], SCALARS[bool], {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "array", "items": TEXT}


def schema() -> Schema:
    """Return the schema of the object that ``report.json`` is."""
    of = Schemas()
    report = of.record(Diagnosis)
    steps = of.known["StepsSummary"]
    for name in LIFTED:
        del steps["properties"][name]
        steps["required"].remove(name)
    report["properties"] |= {
        "schema": {"const": SCHEMA},
        **dict.fromkeys(LIFTED, AllOf(PARTS).schema),
        "unknown": TEXTS,
        "entries": {"type": "array", "items": ENTRY},
    }
    report["required"] = sorted({*report["required"], "schema", *LIFTED})
    of.known["PhaseRow"]["properties"]["share"] = dict(NUMBER)
    return {"$schema": DIALECT, "title": "tfdoctor report", **report, "$defs": of.known}


ENTRY: Schema = {
    "type": "object",
    "properties": {
        "rule": TEXT,
        **dict.fromkeys(("symptoms", "same", "included_in"), TEXTS),
        **dict.fromkeys(("in_together", "in_run_together"), FLAG),
    },
    "required": ["rule", "symptoms", "same", "included_in", "in_together"],
}
"""A finding with those that show the same fault: `report.entries` makes it of the results."""


class Schemas:
    """The schemas of types by their names."""

    def __init__(self) -> None:
        self.known: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:  # noqa: ANN401 - any annotation
        """Return the schema of a type: of a dataclass, a reference to it."""
        if get_origin(kind) is not None:
            return self._compound(get_origin(kind), get_args(kind))
        if is_dataclass(kind):
            return self._reference(kind)
        return {"enum": words_of(kind)} if issubclass(kind, Enum) else SCALARS[kind]

    def _compound(self, origin: Any, parts: tuple[Any, ...]) -> Schema:  # noqa: ANN401 - same
        if origin is Annotated:
            return self.of(parts[0])
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
            properties[key] = self._field(of, marked) if form is None else dict(form.schema)
            if has(marked, OneUnit):
                properties["unit"] = {"enum": [unit.value for unit in Unit]}
            if not has(marked, OmitDefault):
                required.append(key)
        return {"type": "object", "properties": properties, "required": required}

    def _field(self, kind: Any, marked: tuple[Any, ...]) -> Schema:  # noqa: ANN401 - any annotation
        return dict(NUMBER) if has(marked, OneUnit) else self.of(kind)

    def _result(self) -> Schema:
        """Return the schema of a rule's result, which is flat."""
        verdicts = [self.record(kind)["properties"] for kind in (Finding, Healthy)]
        stated = {
            name: of for verdict in verdicts for name, of in verdict.items() if name not in SHOWN
        }
        outcomes = ["finding", "healthy", "not-applicable", "errored"]
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
            "fallbacks": self.of(tuple[Place, ...]),
            "stated": {"type": "object", "properties": stated},
        }
        earlier = set(always) - {"title"}  # version 0.1.0 had none
        properties = always | sometimes
        return {"type": "object", "properties": properties, "required": sorted(earlier)}

    def _remedy(self) -> Schema:
        remedy, edit = self.record(Remedy), self.record(Edit)
        shown = {**edit, "properties": {**edit["properties"], "in_patch": FLAG}}
        edits = {"edit": {"anyOf": [shown, {"type": "null"}]}, "by_hand": edit}
        return {**remedy, "properties": remedy["properties"] | edits}

    def _timeline(self) -> Schema:
        row: Schema = {
            "type": "array",
            "prefixItems": [NUMBER, NUMBER, COUNT, COUNT, COUNT],
            "minItems": 5,
            "maxItems": 5,
        }
        lane: Schema = {
            "type": "object",
            "properties": {"name": TEXT, "bars": {"type": "array", "items": row}},
            "required": ["name", "bars"],
        }
        properties: Schema = {
            **dict.fromkeys(("step", "hidden"), COUNT),
            "total_ms": dict(NUMBER),
            **dict.fromkeys(("parts", "names"), TEXTS),
            "lanes": {"type": "array", "items": lane},
        }
        return {"type": "object", "properties": properties, "required": list(properties)}
