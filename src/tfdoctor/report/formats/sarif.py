"""Findings as SARIF 2.1.0, for code scanning: each at its line, with its rule and, where one exists, its fix.

The specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. What GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import json
import math
from typing import Any
from urllib.parse import quote

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Edit
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.report.places import Placed, PlacedBudget, PlacedFinding, placed, placed_budgets
from tfdoctor.terms.text import name, sentence
from tfdoctor.terms.verdict import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

ROOT = "SRCROOT"  # The base of all paths: the root of the repository

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the log with one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(diagnosis)]}
    return json.dumps(log, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _run(diagnosis: Diagnosis) -> Object:
    budgets, findings = placed_budgets(diagnosis), placed(diagnosis)
    rules = {budget.name: _budget_rule(budget) for budget in budgets}
    rules |= {finding.name: _rule(finding.result.rule) for finding in findings}
    numbers = {rule: number for number, rule in enumerate(rules)}
    new = {"baselineState": "new"} if diagnosis.baseline else {}
    return {
        "tool": {
            "driver": {"name": "tfdoctor", "semanticVersion": diagnosis.version, "rules": list(rules.values())}
        },
        "automationDetails": {"id": f"tfdoctor/{quote(name(diagnosis.subject.title))}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [
            *(_common(budget, numbers) | new for budget in budgets),
            *(_result(finding, numbers) for finding in findings),
        ],
    }


def _budget_rule(budget: PlacedBudget) -> Object:
    key = budget.check.key
    text = (
        f"The budget {key} of the settings is not kept, or could not be measured. A budget is exceeded only if the "
        "whole 95 % interval of the measured value is beyond its limit."
    )
    return {
        "id": budget.name,
        "name": _pascal(budget.name),
        "shortDescription": {"text": f"The budget {key} is not kept."},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance", "budget"]},
    }


def _pascal(rule: str) -> str:
    return "".join(part.capitalize() for part in rule.split("-"))


def _rule(rule: Rule) -> Object:
    """Return the description of a rule; of one that is not installed here, only the title is known."""
    sections, title = rule.doc.sections, sentence(rule.doc.title)
    headings = ("What it checks", "Why it matters", "How to fix")
    known = [f"## {one}\n\n{sections[one]}" for one in headings if one in sections]
    text = "\n\n".join(known) or title
    return {
        "id": name(rule.name),
        "name": _pascal(name(rule.name)),
        "shortDescription": {"text": title},
        "fullDescription": {"text": sections.get("What it checks", title)},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance", rule.topic.value]},
    }


def _result(finding: PlacedFinding, numbers: dict[str, int]) -> Object:
    saving, run = finding.result.saving, finding.result.run
    found = _common(finding, numbers)
    if finding.known is not None:
        found["baselineState"] = "unchanged" if finding.known else "new"
    if saving is not None and saving.per_step.value == saving.per_step.value:
        found["properties"] = {
            "savingMsPerStep": round(saving.per_step.value, 6),
            "savingShare": round(saving.share, 6),
            "bound": saving.bound.value,
        }
    if run is not None and math.isfinite(run.total.value) and math.isfinite(run.share):
        found.setdefault("properties", {}).update(
            savingMsOfRun=round(run.total.value, 6),
            savingShareOfRun=round(run.share, 6),
            boundOfRun=run.bound.value,
        )
    if finding.edit is not None:
        found["fixes"] = [_fix(finding, finding.edit)]
    return found


def _common(place: Placed, numbers: dict[str, int]) -> Object:
    """Return what every result has."""
    location = {"artifactLocation": _artifact(place.path), "region": {"startLine": place.line}}
    return {
        "ruleId": place.name,
        "ruleIndex": numbers[place.name],
        "level": LEVELS[place.severity],
        "message": {"text": place.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"tfdoctorFinding/v1": place.fingerprint},
    }


def _artifact(path: str) -> Object:
    return {"uri": quote(path, errors="backslashreplace"), "uriBaseId": ROOT}


def _fix(finding: PlacedFinding, edit: Edit) -> Object:
    replacements: list[Object] = []
    for one in edit.replacements:
        (start_line, start_column), (end_line, end_column) = one.start, one.end
        region = {
            "startLine": start_line,
            "startColumn": start_column,
            "endLine": end_line,
            "endColumn": end_column,
        }
        replacements.append({"deletedRegion": region, "insertedContent": {"text": one.text}})
    change = {"artifactLocation": _artifact(finding.path), "replacements": replacements}
    return {"description": {"text": finding.fault.changes[0].action}, "artifactChanges": [change]}
