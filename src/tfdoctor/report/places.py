"""Findings at the lines of a code review: each with its file in the repository, and a name that outlives edits."""

import hashlib
from dataclasses import dataclass

from tfdoctor.diagnosis import Diagnosis, Edit, Result
from tfdoctor.report.entries import entries
from tfdoctor.report.findings import Fault, fault, place_of
from tfdoctor.verdict import Finding, Severity


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding with a place in a file of the repository."""

    result: Result
    fault: Fault
    path: str  # in the repository; relative, with "/" between folders
    line: int
    severity: Severity
    edit: Edit | None  # the first of its edits of that file that can be made

    @property
    def fingerprint(self) -> str:
        """What identifies the finding in the next report: its rule and its file, but neither line nor figures."""
        return hashlib.sha256(f"{self.result.rule.name}\0{self.path}".encode()).hexdigest()

    @property
    def message(self) -> str:
        """What is wrong, what to change, and what that saves."""
        saves = f"Saves {self.fault.saves}." if self.fault.saves else ""
        change = f"{self.fault.what.rstrip('.')}."
        told = self.fault.summary
        return " ".join(filter(None, (told, change if change != told else "", saves)))


def placed(diagnosis: Diagnosis) -> tuple[PlacedFinding, ...]:
    """Return the entries whose place in a file is known, in the order of the report.

    A file of another repository, or of an installed package, has no place in the review.
    """
    found = []
    for entry in entries(diagnosis):
        finding = entry.result.outcome
        at = place_of(finding) if isinstance(finding, Finding) else None
        if at is None or not isinstance(finding, Finding):
            continue
        path = diagnosis.repository.get(at.path, "" if at.path.startswith(("/", "~")) else at.path)
        severity = entry.result.severity or finding.severity or Severity.NOTE
        if path and "://" not in path:
            edit = _edit(entry.result, at.path)
            told = fault(entry)
            found.append(PlacedFinding(entry.result, told, path, max(1, at.line), severity, edit))
    return tuple(found)


def _edit(result: Result, path: str) -> Edit | None:
    edits = (edit for edit in result.edits if edit.replacements and edit.at)
    return next((edit for edit in edits if edit.at and edit.at.path == path), None)
