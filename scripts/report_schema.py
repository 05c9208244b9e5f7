"""The JSON Schema of report.json (2020-12), for the reference."""

from enum import StrEnum
from typing import Any, get_args

import msgspec

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import EntryRow
from tfdoctor.stored.report import LIFTED, SCHEMA
from tfdoctor.terms.json_form import FORMS, Number, Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> Schema:
    """Return the schema of the object that ``report.json`` is."""
    types = [Diagnosis, EntryRow, *(like for form in FORMS for like in form.like)]
    _, known = msgspec.json.schema_components(types, schema_hook=_of_form, ref_template="#/$defs/{name}")
    for of in known.values():
        sometimes = set()
        for name, field in of.get("properties", {}).items():
            field.pop("default", None)
            sometimes |= {name} if field.pop("sometimes", None) else set()
        if "properties" in of:
            of["required"] = [name for name in of["properties"] if name not in sometimes]
        for kind in StrEnum.__subclasses__() if "enum" in of else ():
            if sorted(kind) == of["enum"]:
                of["enum"] = list(kind)  # in the order of their definition
    report, steps = known.pop("Diagnosis"), known["StepsSummary"]
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
