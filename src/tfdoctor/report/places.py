"""Findings at the lines of a code review: each with its file in the repository, and a name that outlives edits."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from tfdoctor.diagnosis import Diagnosis, Edit, Result
from tfdoctor.report.entries import entries
from tfdoctor.report.findings import Fault, fault, place_of
from tfdoctor.verdict import Finding, Severity

ELSEWHERE = re.compile(r"[/~]|In \[\d+\]|.*(://|\\)", re.DOTALL)
"""How paths outside of any repository begin: absolute ones, a home folder, notebook cells, addresses, Windows."""

INSTALLED = {"site-packages", "dist-packages", ".."}
"""Folders whose files no commit holds, and the way out of the repository."""


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

    A file of another repository, or of an installed package, has no place in the review. A file that is not on
    this machine may be in it: its path is kept if it is relative, for jobs run from the root of their repository.
    GitHub and GitLab take all paths from that root; a finding whose path names no file has no line there.
    """
    found = []
    for entry in entries(diagnosis):
        finding = entry.result.outcome
        at = place_of(finding) if isinstance(finding, Finding) else None
        if at is None or not isinstance(finding, Finding):
            continue
        path = diagnosis.repository.get(at.path) or _likely(at.path)
        severity = entry.result.severity or finding.severity or Severity.NOTE
        if path:
            edit = _edit(entry.result, at.path)
            told = fault(entry)
            found.append(PlacedFinding(entry.result, told, path, max(1, at.line), severity, edit))
    return tuple(found)


def _likely(path: str) -> str:
    """Return the path in the repository of a file that is not on this machine; "" if it cannot be in one."""
    outside = ELSEWHERE.match(path) or INSTALLED & set(PurePosixPath(path).parts)
    return "" if outside else path


def _edit(result: Result, path: str) -> Edit | None:
    edits = (edit for edit in result.edits if edit.replacements and edit.at)
    return next((edit for edit in edits if edit.at and edit.at.path == path), None)
