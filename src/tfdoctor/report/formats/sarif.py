"""Findings as SARIF 2.1.0, for code scanning: each at its line, with its rule and, where one exists, its fix.

The specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. What GitHub reads of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import json
import math
from typing import Any
from urllib.parse import quote

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import BUDGET, Placed, changes, finding, placed
from tfdoctor.terms.text import name, sentence
from tfdoctor.terms.verdict import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

ROOT = "SRCROOT"  # The base of all paths: the root of the repository

LEVELS = {Severity.CRITICAL: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}

REGION = ("startLine", "startColumn", "endLine", "endColumn")

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the log with one run."""
    places = list(placed(diagnosis))
    rules = {one.name: _rule(one) for one in places}
    run = {
        "tool": {
            "driver": {"name": "tfdoctor", "semanticVersion": diagnosis.version, "rules": list(rules.values())}
        },
        "automationDetails": {"id": f"tfdoctor/{quote(name(diagnosis.subject.title))}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [
            _result(one, list(rules).index(one.name), compared=diagnosis.baseline is not None) for one in places
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _rule(place: Placed) -> Object:
    """Return what is told of a rule or budget; of a rule that is not installed here, only its title is known."""
    if place.result:
        rule, level = place.result.rule, "warning"
        short, sections, tag = sentence(rule.doc.title), rule.doc.sections, rule.topic.value
        headings = ("What it checks", "Why it matters", "How to fix")
        full = sections.get("What it checks", short)
        told = "\n\n".join(f"## {one}\n\n{sections[one]}" for one in headings if one in sections) or short
    else:
        key, level, tag = place.name.removeprefix(BUDGET), "error", "budget"
        short = f"The budget {key} is not kept."
        full = told = (
            f"The budget {key} of the settings is not kept, or could not be measured. A budget is exceeded only if "
            "the whole 95 % interval of the measured value is beyond its limit."
        )
    return {
        "id": place.name,
        "name": "".join(part.capitalize() for part in place.name.split("-")),
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": told, "markdown": told},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["performance", tag]},
    }


def _result(place: Placed, rule: int, *, compared: bool) -> Object:
    location = {"artifactLocation": _artifact(place), "region": {"startLine": place.line}}
    found: Object = {
        "ruleId": place.name,
        "ruleIndex": rule,
        "level": LEVELS[place.severity],
        "message": {"text": place.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"tfdoctorFinding/v1": place.fingerprint},
    }
    if compared:
        found["baselineState"] = "unchanged" if place.known else "new"
    if place.result is None:
        return found
    saving, run = place.result.saving, place.result.run
    if saving is not None and math.isfinite(saving.ms_per_step) and math.isfinite(saving.share):
        found["properties"] = {
            "savingMsPerStep": round(saving.ms_per_step, 6),
            "savingShare": round(saving.share, 6),
            "bound": saving.bound.value,
        }
    if run is not None and math.isfinite(run.ms) and math.isfinite(run.share):
        found.setdefault("properties", {}).update(
            savingMsOfRun=round(run.ms, 6), savingShareOfRun=round(run.share, 6), boundOfRun=run.bound.value
        )
    if place.edit:
        replacements = []
        for one in place.edit.replacements:
            region = dict(zip(REGION, one.start + one.end, strict=True))
            replacements.append({"deletedRegion": region, "insertedContent": {"text": one.text}})
        change = {"artifactLocation": _artifact(place), "replacements": replacements}
        remedies = zip(finding(place.result).remedies, changes(place.result), strict=True)
        action = next(change.action for remedy, change in remedies if remedy.edit is place.edit)
        found["fixes"] = [{"description": {"text": action}, "artifactChanges": [change]}]
    return found


def _artifact(place: Placed) -> Object:
    return {"uri": quote(place.path, errors="backslashreplace"), "uriBaseId": ROOT}
