"""Writes a diagnosis as the object of report.json, and reads such an object: its types say their own form there."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import NoneType
from typing import Any, TypeVar

from msgspec import Struct, structs

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rank import rated_by_trial
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.terms import text
from tfdoctor.terms.json_form import Json, as_json, columns, converted, number, parts
from tfdoctor.terms.record import rebuilt
from tfdoctor.terms.verdict import Finding, Replacement

SCHEMA = 1  # Fields are only ever added; a field that changes its meaning makes it 2
LIFTED = ("breakdown_ms", "untraced_breakdown_ms")  # Fields of the steps that stand beside them in a report
T = TypeVar("T")


class NoReportError(ValueError):
    """An object is no report; the text names the field, and what was expected of it."""


def write(diagnosis: Diagnosis) -> dict[str, Json]:
    """Return the object of a report."""
    found = as_json(diagnosis)
    return {"schema": SCHEMA, **found, **{name: found["steps"].pop(name) for name in LIFTED}}


def read(content: Mapping[str, Json], rules: Iterable[Rule] = ()) -> Diagnosis:
    """Return the diagnosis of a report; a rule that is not among these can only be named.

    Raises:
        NoReportError: a field is missing, or has another form; the text names it as the file does.
    """
    steps, lifted = content.get("steps"), {name: content[name] for name in LIFTED if name in content}
    whole = {**content, "steps": {**steps, **lifted}} if isinstance(steps, Mapping) else content
    try:
        found: Diagnosis = finished(converted(whole, Diagnosis))
    except ValueError as error:
        raise NoReportError(_fault(str(error))) from error
    known, results, seen = {rule.name: rule for rule in rules}, [], set[str]()
    for at, result in enumerate(found.results):
        name = result.rule.name
        if name in seen:
            raise NoReportError(f"results[{at}]: a second result of the rule {name}")
        seen.add(name)
        doc = replace(result.rule.doc, title=_legible(result.rule.doc.title))
        rule = known.get(_legible(name)) or replace(result.rule, name=_legible(name), doc=doc)
        outcome = rule.counted(result.outcome)
        severity = result.severity if isinstance(outcome, Finding) else None
        results.append(replace(result, rule=rule, outcome=outcome, severity=severity))
    # Reports of earlier versions rate a finding by its promise alone.
    return replace(found, results=rated_by_trial(results))


def _fault(error: str) -> str:
    """Return what is wrong in a report, and where, by the error of msgspec: "steps.rows[0]: it is missing"."""
    if "surrogates not allowed" in error:  # msgspec can show no such text
        return "a text has halves of characters"
    what, *places = re.split(r" - at `\$(.*?)`", error)
    if missing := re.fullmatch("Object missing required field `(.*)`", what):
        places, what = [f".{missing[1]}", *places], "it is missing"
    where = "".join(reversed(places)).lstrip(".")
    where = re.sub(rf"^steps\.(?=({'|'.join(LIFTED)})\b)", "", where)
    what, _, regex = what.partition(" matching regex")
    return f"{where}: {what[:1].lower()}{what[1:]}{' of another form' if regex else ''}"


def finished(part: T) -> T:
    """Return a diagnosis, or a part of one, as its report has it: what is rendered of either is the same.

    Its texts have no hidden characters and an end; its numbers have nine significant digits. A diagnosis is
    finished where it is made or read; what is added to it later, where that is done.
    """
    return rebuilt(part, _rounded, record=_unknown, key=cache(_legible), kept=(Rule, Replacement))


def _legible(value: Any) -> Any:  # noqa: ANN401 - a text, or any other value, which stays
    if not isinstance(value, str) or (len(value) <= text.BLOCK_LIMIT and value.isprintable()):  # as nearly all are
        return value
    return text.shorten(text.legible(value), text.BLOCK_LIMIT)


def _unknown(record: Struct) -> Struct:
    """Return a record in which None stands for each unknown number that may be missing."""
    amounts = {name: getattr(record, name) for name in _optional(type(record))}
    numbers = {name: getattr(amount, "value", amount) for name, amount in amounts.items()}
    unknown = {name: None for name, found in numbers.items() if isinstance(found, float) and math.isnan(found)}
    return structs.replace(record, **unknown) if unknown else record


@cache
def _optional(kind: type[Struct]) -> list[str]:
    return [name for name, _, hint, _ in columns(kind) if NoneType in parts(hint)]


def _rounded(value: Any) -> Any:  # noqa: ANN401 - same
    if isinstance(value, float):
        found = number(value)
        return math.nan if found is None else found
    return _legible(value)
