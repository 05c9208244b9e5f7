"""Findings as SARIF 2.1.0, for code scanning: each at its line, with its rule and, where one exists, its fix.

The specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. What GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import json
import math
from typing import Any
from urllib.parse import quote

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.report.findings import changes
from tfdoctor.report.places import BUDGET, Placed, placed
from tfdoctor.terms.text import name, sentence
from tfdoctor.terms.verdict import Edit, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

ROOT = "SRCROOT"  # The base of all paths: the root of the repository

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the log with one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(diagnosis)]}
    return json.dumps(log, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _run(diagnosis: Diagnosis) -> Object:
    places = placed(diagnosis)
    rules = {one.name: _rule(one.result.rule) if one.result else _budget_rule(one.name) for one in places}
    numbers = {rule: number for number, rule in enumerate(rules)}
    return {
        "tool": {
            "driver": {"name": "tfdoctor", "semanticVersion": diagnosis.version, "rules": list(rules.values())}
        },
        "automationDetails": {"id": f"tfdoctor/{quote(name(diagnosis.subject.title))}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(one, numbers, compared=diagnosis.baseline is not None) for one in places],
    }


def _budget_rule(budget: str) -> Object:
    key = budget.removeprefix(BUDGET)
    text = (
        f"The budget {key} of the settings is not kept, or could not be measured. A budget is exceeded only if the "
        "whole 95 % interval of the measured value is beyond its limit."
    )
    return _described(budget, f"The budget {key} is not kept.", text, text, "error", "budget")


def _rule(rule: Rule) -> Object:
    """Return the description of a rule; of one that is not installed here, only the title is known."""
    sections, title = rule.doc.sections, sentence(rule.doc.title)
    headings = ("What it checks", "Why it matters", "How to fix")
    known = [f"## {one}\n\n{sections[one]}" for one in headings if one in sections]
    full, told = sections.get("What it checks", title), "\n\n".join(known) or title
    return _described(name(rule.name), title, full, told, "warning", rule.topic.value)


def _described(rule: str, short: str, full: str, told: str, level: str, tag: str) -> Object:
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": told, "markdown": told},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["performance", tag]},
    }


def _result(place: Placed, numbers: dict[str, int], *, compared: bool) -> Object:
    location = {"artifactLocation": _artifact(place.path), "region": {"startLine": place.line}}
    found: Object = {
        "ruleId": place.name,
        "ruleIndex": numbers[place.name],
        "level": LEVELS[place.severity],
        "message": {"text": place.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"tfdoctorFinding/v1": place.fingerprint},
    }
    if compared:
        found["baselineState"] = "unchanged" if place.known else "new"
    saving, run = (place.result.saving, place.result.run) if place.result else (None, None)
    if saving is not None and saving.ms_per_step == saving.ms_per_step:
        found["properties"] = {
            "savingMsPerStep": round(saving.ms_per_step, 6),
            "savingShare": round(saving.share, 6),
            "bound": saving.bound.value,
        }
    if run is not None and math.isfinite(run.ms) and math.isfinite(run.share):
        found.setdefault("properties", {}).update(
            savingMsOfRun=round(run.ms, 6), savingShareOfRun=round(run.share, 6), boundOfRun=run.bound.value
        )
    if place.result and place.edit:
        found["fixes"] = [_fix(place.path, next(changes(place.result)).action, place.edit)]
    return found


def _artifact(path: str) -> Object:
    return {"uri": quote(path, errors="backslashreplace"), "uriBaseId": ROOT}


def _fix(path: str, action: str, edit: Edit) -> Object:
    replacements: list[Object] = []
    for one in edit.replacements:
        (start_line, start_column), (end_line, end_column) = one.start, one.end
        lines = {"startLine": start_line, "endLine": end_line}
        region = {**lines, "startColumn": start_column, "endColumn": end_column}
        replacements.append({"deletedRegion": region, "insertedContent": {"text": one.text}})
    change = {"artifactLocation": _artifact(path), "replacements": replacements}
    return {"description": {"text": action}, "artifactChanges": [change]}
