"""Findings as SARIF 2.1.0, for code scanning: each at its line, with its rule and, where one exists, its fix.

The specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. What GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import json
from typing import Any
from urllib.parse import quote

from tfdoctor.diagnosis import Diagnosis, Edit, Replacement
from tfdoctor.report.places import PlacedFinding, placed
from tfdoctor.rule import Rule
from tfdoctor.text import name, sentence
from tfdoctor.verdict import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

ROOT = "SRCROOT"
"""The base of all paths: the root of the repository."""

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the log with one run."""
    findings = placed(diagnosis)
    rules = list({finding.result.rule.name: finding.result.rule for finding in findings}.values())
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(diagnosis, findings, rules)]}
    return json.dumps(log, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _run(diagnosis: Diagnosis, findings: tuple[PlacedFinding, ...], rules: list[Rule]) -> Object:
    numbers = {rule.name: number for number, rule in enumerate(rules)}
    return {
        "tool": {
            "driver": {
                "name": "tfdoctor",
                "semanticVersion": diagnosis.version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "automationDetails": {"id": f"tfdoctor/{quote(name(diagnosis.subject.title))}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(finding, numbers) for finding in findings],
    }


def _rule(rule: Rule) -> Object:
    sections = rule.doc.sections
    text = "\n\n".join(
        f"## {heading}\n\n{sections[heading]}"
        for heading in ("What it checks", "Why it matters", "How to fix")
    )
    return {
        "id": name(rule.name),
        "name": "".join(part.capitalize() for part in name(rule.name).split("-")),
        "shortDescription": {"text": sentence(rule.doc.title)},
        "fullDescription": {"text": sections["What it checks"]},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance", rule.topic.value]},
    }


def _result(finding: PlacedFinding, numbers: dict[str, int]) -> Object:
    saving = finding.result.saving
    found: Object = {
        "ruleId": name(finding.result.rule.name),
        "ruleIndex": numbers[finding.result.rule.name],
        "level": LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [_location(finding.path, finding.line)],
        "partialFingerprints": {"tfdoctorFinding/v1": finding.fingerprint},
    }
    if saving is not None and saving.per_step.value == saving.per_step.value:
        found["properties"] = {
            "savingMsPerStep": round(saving.per_step.value, 6),
            "savingShare": round(saving.share, 6),
            "bound": saving.bound.value,
        }
    if finding.edit is not None:
        found["fixes"] = [_fix(finding, finding.edit)]
    return found


def _location(path: str, line: int) -> Object:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(path),
            "region": {"startLine": line},
        }
    }


def _artifact(path: str) -> Object:
    return {"uri": quote(path), "uriBaseId": ROOT}


def _fix(finding: PlacedFinding, edit: Edit) -> Object:
    return {
        "description": {"text": finding.fault.what},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(finding.path),
                "replacements": [_replacement(one) for one in edit.replacements],
            }
        ],
    }


def _replacement(one: Replacement) -> Object:
    (start_line, start_column), (end_line, end_column) = one.start, one.end
    return {
        "deletedRegion": {
            "startLine": start_line,
            "startColumn": start_column,
            "endLine": end_line,
            "endColumn": end_column,
        },
        "insertedContent": {"text": one.text},
    }
