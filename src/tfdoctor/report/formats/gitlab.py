"""Findings as a GitLab Code Quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.

GitLab hides every object after an incomplete one, so each has all fields, and each fingerprint occurs once.
"""

import json

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.places import PlacedFinding, placed
from tfdoctor.text import name
from tfdoctor.verdict import Severity

SUFFIX = "gitlab.json"
"""Artifacts are found by name, and editors know JSON by its suffix."""

SEVERITIES = {Severity.CRITICAL: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(diagnosis: Diagnosis) -> str:
    """Return the array of findings."""
    found = {finding.fingerprint: _object(finding) for finding in placed(diagnosis)}
    return json.dumps(list(found.values()), indent=2, sort_keys=True) + "\n"


def _object(finding: PlacedFinding) -> dict[str, object]:
    return {
        "description": finding.message,
        "check_name": name(finding.result.rule.name),
        "fingerprint": finding.fingerprint,
        "severity": SEVERITIES[finding.severity],
        "location": {"path": finding.path, "lines": {"begin": finding.line}},
    }
