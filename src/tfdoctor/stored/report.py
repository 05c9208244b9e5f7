"""Writes a diagnosis as the object of report.json, and reads such an object.

The forms of the fields are those of the types' annotations (see ``json_form``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from cattrs import BaseValidationError, Converter, transform_error

from tfdoctor.diagnosis import Diagnosis, Result, Timeline
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.tried import rated_by_trial
from tfdoctor.stored import timelines
from tfdoctor.stored.check import Checked, JsonFault
from tfdoctor.stored.converter import converter
from tfdoctor.stored.results import ResultForms
from tfdoctor.stored.schema import LIFTED, SCHEMA, schema
from tfdoctor.terms import text
from tfdoctor.terms.json_form import Json


class NoReportError(ValueError):
    """An object is no report; the text names the field, and what was expected of it."""


def write(diagnosis: Diagnosis) -> dict[str, Json]:
    """Return the object of a report: numbers have nine significant digits, null is an unknown one."""
    found = _writer().unstructure(diagnosis)
    lifted = {name: found["steps"].pop(name) for name in LIFTED}
    report: dict[str, Json] = legible({"schema": SCHEMA, **found, **lifted})
    return report


def read(content: Mapping[str, Json], rules: Iterable[Rule] = ()) -> Diagnosis:
    """Return the diagnosis of a report; a rule that is not among these can only be named.

    Raises:
        NoReportError: a field is missing, or has another form; the text names it as the file does.
    """
    fault = next(_faults(content), None)
    if fault is not None:
        raise NoReportError(f"{fault.path}: {fault.what}")
    found = _structured(legible(content), rules)
    # Reports of earlier versions rate a finding by its promise alone.
    return replace(found, results=rated_by_trial(found.results))


def _faults(content: Mapping[str, Json]) -> Iterator[JsonFault]:
    """Yield what is wrong with the object of a report, by its schema and beyond it."""
    form = _schema()
    yield from Checked(form["$defs"]).faults(content, form)
    seen = set[str]()
    for at, result in enumerate(content["results"]):
        if result["rule"] in seen:
            yield JsonFault(f"results[{at}]", f"a second result of the rule {result['rule']}")
        seen.add(result["rule"])
    if content.get("timeline") is not None:
        yield from timelines.faults(content["timeline"])


def _structured(content: Mapping[str, Json], rules: Iterable[Rule]) -> Diagnosis:
    steps = content.get("steps")
    lifted = {name: content[name] for name in LIFTED if name in content}
    whole = {**content, "steps": {**steps, **lifted}} if isinstance(steps, Mapping) else content
    try:
        return reports(rules).structure(whole, Diagnosis)
    except BaseValidationError as error:
        first = transform_error(error, path="", format_exception=_expected)[0]
        what, _, where = first.rpartition(" @ ")  # as the library joins them
        raise NoReportError(f"{where.removeprefix('.')}: {what}") from error


EXACT = ("patch", "replacements")  # Fields with parts of the user's files, which no reader sees as they are
DEEPEST = 40  # Values within values; those of a report have 12


def legible(value: Json, depth: int = 0) -> Any:  # noqa: ANN401 - the same JSON value
    """Return a JSON value whose names and texts have no hidden characters and an end, and none too deep."""
    if isinstance(value, str):
        if len(value) <= text.BLOCK_LIMIT and value.isprintable():  # as nearly all are
            return value
        return text.shorten(text.legible(value), text.BLOCK_LIMIT)
    if isinstance(value, Mapping):
        return {
            legible(name): item if name in EXACT else legible(item, depth + 1)
            for name, item in value.items()
            if depth < DEEPEST
        }
    if isinstance(value, list):
        return [legible(item, depth + 1) for item in value if depth < DEEPEST]
    return value


def settled(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis as its report stores it: what is rendered now is then what is rendered of that later."""
    rules = {result.rule.name: result.rule for result in diagnosis.results}
    return _structured(write(diagnosis), rules.values())


def reports(rules: Iterable[Rule] = ()) -> Converter:
    """Return the converter of diagnoses, and of all that they consist of."""
    made = converter()
    results = ResultForms(made, {rule.name: rule for rule in rules})
    made.register_unstructure_hook(Result, results.write)
    made.register_structure_hook(Result, lambda value, _: results.read(value))
    made.register_unstructure_hook(Timeline, timelines.write)
    made.register_structure_hook(Timeline, lambda value, _: timelines.read(value))
    return made


@cache
def _schema() -> Mapping[str, Json]:
    return schema(reads=True)


@cache
def _writer() -> Converter:
    """Return the converter that writes: it takes 20 ms to make, and needs no rules."""
    return reports()


def _expected(error: BaseException, kind: type | None) -> str:
    """Say what is wrong with a field."""
    if isinstance(error, KeyError):
        return "it is missing"
    if isinstance(error, ValueError):
        return str(error)
    return f"expected {getattr(kind, '__name__', kind)}"
