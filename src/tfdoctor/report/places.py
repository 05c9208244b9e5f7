"""Findings at the lines of a code review: each with its file in the repository, and a name that outlives edits."""

import hashlib
import re
from pathlib import PurePosixPath

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.results import Result
from tfdoctor.report import findings
from tfdoctor.report.sections import budget_state, budget_told
from tfdoctor.report.words import joined
from tfdoctor.terms import text
from tfdoctor.terms.humanize import NEAR, place
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Edit, PlaceKind, Severity

# How paths outside of any repository begin: absolute ones, a home folder, notebook cells, addresses, Windows.
ELSEWHERE = re.compile(r"[/~]|In \[\d+\]|.*(://|\\)", re.DOTALL)
# Folders whose files no commit holds, and the way out of the repository.
INSTALLED = {"site-packages", "dist-packages", ".."}

BUDGET = "budget-"  # How the name of a budget begins, beside those of rules


class Placed(Record, kw_only=True):
    """A finding, or a budget that fails, with a place in a file of the repository."""

    name: str  # of its rule, or "budget-" and its key; clean text
    path: str  # in the repository; relative, with "/" between folders
    line: int
    severity: Severity
    message: str
    result: Result | None = None  # of a finding
    edit: Edit | None = None  # the first of its edits of that file that can be made
    known: bool | None = None  # whether the baseline has all of it; None without a baseline

    @property
    def fingerprint(self) -> str:
        """What identifies it in the next report: its rule or budget, and its file, but neither line nor figures.

        The name of a file on a disk may have halves of characters.
        """
        name = self.result.rule.name if self.result else self.name
        return hashlib.sha256(f"{name}\0{self.path}".encode(errors="backslashreplace")).hexdigest()


def placed(diagnosis: Diagnosis) -> list[Placed]:
    """Return the budgets that fail and have a line in a file of the settings, then the entries of the report.

    An entry is at the best of its places that the review can show. A file of another repository, or of an installed
    package, has no place in the review. A file that is not on this machine may be in it: its path is kept if it is
    relative, for jobs run from the root of their repository. GitHub and GitLab take all paths from that root.
    """
    found = [
        Placed(
            name=f"{BUDGET}{check.key}",
            path=check.at.path,
            line=max(1, check.at.line),
            severity=Severity.CRITICAL,  # it fails the command
            message=f"Budget {check.key} {budget_state(check)}: {budget_told(check)}.",
        )
        for check in diagnosis.budgets
        if check.state.failed and check.at is not None
    ]
    for entry in diagnosis.entries:
        result, outcome = entry.result, findings.finding(entry.result)
        paths = {place: diagnosis.repository.get(place.path) or _likely(place.path) for place in result.places}
        best = next((place for place in result.places if paths[place]), None)
        if best is None:
            continue
        edits = (one.edit for one in outcome.remedies if one.edit and one.edit.replacements and not one.changes)
        found.append(
            Placed(
                name=text.name(result.rule.name),
                path=paths[best],
                line=max(1, best.line),
                severity=result.severity or outcome.severity or Severity.NOTE,
                message=_message(entry, diagnosis, best.kind),
                result=result,
                edit=next((edit for edit in edits if edit.at and edit.at.path == best.path), None),
                known=None if diagnosis.baseline is None else bool(findings.known(entry)),
            )
        )
    return found


def _message(entry: Entry, diagnosis: Diagnosis, shown: PlaceKind) -> str:
    """Return what is wrong, what to change, what that saves, and what is at the line if it is not its own."""
    told, change = findings.summary(entry.result), text.sentence(findings.what(entry.result))
    amount, each = findings.saving(entry, diagnosis)
    saves, best, line = (
        f"Saves {joined(amount, each)}." if amount else "",
        entry.result.place,
        "The line is unknown",
    )
    if best and best.kind is PlaceKind.LINE:
        line = f"The line, {place(best)}, is in no file of the repository"
    near = "" if shown is PlaceKind.LINE else f"{line}: this is the {NEAR[shown]}."
    return joined(told, change if change != told else "", saves, near, by=" ")


def _likely(path: str) -> str:
    """Return the path in the repository of a file that is not on this machine; "" if it cannot be in one."""
    outside = ELSEWHERE.match(path) or INSTALLED & set(PurePosixPath(path).parts)
    return "" if outside else path
