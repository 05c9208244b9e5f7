"""Findings as a GitLab Code Quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.

GitLab hides every object after an incomplete one, so each has all fields, and each fingerprint occurs once.
"""

import json

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.findings import KNOWN, placed
from tfdoctor.terms.text import capitalized
from tfdoctor.terms.verdict import Severity

SUFFIX = "gitlab.json"  # Artifacts are found by name, and editors know JSON by its suffix

SEVERITIES = {Severity.CRITICAL: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(diagnosis: Diagnosis) -> str:
    """Return the array of findings. A known one stays, lowered: GitLab would call one that is left out fixed."""
    found: dict[str, dict[str, object]] = {}
    for place in placed(diagnosis):
        found[place.fingerprint] = {
            "description": f"{capitalized(KNOWN)}: {place.message}" if place.known else place.message,
            "check_name": place.name,
            "fingerprint": place.fingerprint,
            "severity": "info" if place.known else SEVERITIES[place.severity],
            "location": {"path": place.path, "lines": {"begin": place.line}},
        }
    return json.dumps(list(found.values()), indent=2, sort_keys=True) + "\n"
