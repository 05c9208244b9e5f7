"""Findings at the lines of a code review: each with its file in the repository, and a name that outlives edits."""

import hashlib
import re
from pathlib import PurePosixPath

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry, entries
from tfdoctor.diagnosis.gates import BudgetCheck
from tfdoctor.diagnosis.results import Edit, Result
from tfdoctor.report.findings import Fault, fault
from tfdoctor.report.gates import budget_message
from tfdoctor.terms.humanize import NEAR
from tfdoctor.terms.record import Record
from tfdoctor.terms.text import sentence
from tfdoctor.terms.verdict import Finding, PlaceKind, Severity

# How paths outside of any repository begin: absolute ones, a home folder, notebook cells, addresses, Windows.
ELSEWHERE = re.compile(r"[/~]|In \[\d+\]|.*(://|\\)", re.DOTALL)
# Folders whose files no commit holds, and the way out of the repository.
INSTALLED = {"site-packages", "dist-packages", ".."}


class PlacedFinding(Record):
    """A finding with a place in a file of the repository."""

    result: Result
    fault: Fault
    path: str  # in the repository; relative, with "/" between folders
    line: int
    kind: PlaceKind
    severity: Severity
    edit: Edit | None  # the first of its edits of that file that can be made
    known: bool | None  # whether the baseline has all of it; None without a baseline

    @property
    def name(self) -> str:
        """The name of its rule, as clean text."""
        return self.fault.rule

    @property
    def fingerprint(self) -> str:
        """What identifies the finding in the next report: its rule and its file, but neither line nor figures."""
        return _digest(f"{self.result.rule.name}\0{self.path}")

    @property
    def message(self) -> str:
        """What is wrong, what to change, what that saves, and what is at the line if it is not its own."""
        told, change, saving = self.fault.summary, sentence(self.fault.what), self.fault.saving
        saves = f"Saves {saving.whole}." if saving.amount else ""
        near, best = "", self.result.place
        if self.kind is not PlaceKind.LINE:
            own = best and best.kind is PlaceKind.LINE
            line = f"The line, {self.fault.where}, is in no file of the repository"
            near = f"{line if own else 'The line is unknown'}: this is the {NEAR[self.kind]}."
        return " ".join(filter(None, (told, change if change != told else "", saves, near)))


class PlacedBudget(Record):
    """A budget that fails, at its line in the settings."""

    check: BudgetCheck
    path: str
    line: int

    @property
    def name(self) -> str:
        """What a reader of the format calls it."""
        return f"budget-{self.check.key}"

    @property
    def severity(self) -> Severity:
        """How much it matters: it fails the command."""
        return Severity.CRITICAL

    @property
    def fingerprint(self) -> str:
        """What identifies it in the next report: no line and no figures."""
        return _digest(f"{self.name}\0{self.path}")

    @property
    def message(self) -> str:
        """What was measured, and the limit."""
        return budget_message(self.check)


Placed = PlacedBudget | PlacedFinding


def placed_budgets(diagnosis: Diagnosis) -> tuple[PlacedBudget, ...]:
    """Return the budgets that fail and have a line in a file of the settings."""
    return tuple(
        PlacedBudget(check, check.at.path, max(1, check.at.line))
        for check in diagnosis.budgets
        if check.failed and check.at is not None
    )


def placed(diagnosis: Diagnosis) -> tuple[PlacedFinding, ...]:
    """Return the entries in the order of the report, each at the best of its places that the review can show.

    A file of another repository, or of an installed package, has no place in the review. A file that is not on
    this machine may be in it: its path is kept if it is relative, for jobs run from the root of their repository.
    GitHub and GitLab take all paths from that root.
    """
    found = (_placed(entry, diagnosis) for entry in entries(diagnosis))
    return tuple(finding for finding in found if finding)


def _placed(entry: Entry, diagnosis: Diagnosis) -> PlacedFinding | None:
    result, told = entry.result, fault(entry, diagnosis)
    at = {place: diagnosis.repository.get(place.path) or _likely(place.path) for place in result.places}
    place = next((place for place in result.places if at[place]), None)
    if place is None or not isinstance(result.outcome, Finding):
        return None
    pairs = zip(result.outcome.remedies, result.edits, strict=False)
    edits = (edit for remedy, edit in pairs if edit.replacements and edit.at and not remedy.changes)
    return PlacedFinding(
        result=result,
        fault=told,
        path=at[place],
        line=max(1, place.line),
        kind=place.kind,
        severity=result.severity or result.outcome.severity or Severity.NOTE,
        edit=next((edit for edit in edits if edit.at and edit.at.path == place.path), None),
        known=None if diagnosis.baseline is None else bool(told.known),
    )


def _likely(path: str) -> str:
    """Return the path in the repository of a file that is not on this machine; "" if it cannot be in one."""
    outside = ELSEWHERE.match(path) or INSTALLED & set(PurePosixPath(path).parts)
    return "" if outside else path


def _digest(text: str) -> str:
    """Return the SHA-256 of a text; the name of a file on a disk may have halves of characters."""
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
