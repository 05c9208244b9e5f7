"""The words of one result: what to change, where and what it saves; in a code review; and what other rules said."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from difflib import ndiff
from pathlib import PurePosixPath

from tfdoctor.diagnosis import Diagnosis, Result, Trial, Trials
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.rank import is_lowered
from tfdoctor.report.sections import budget_state, budget_told, energy_saved
from tfdoctor.report.trial_words import against
from tfdoctor.report.words import each, joined, listed, run_saving, saves
from tfdoctor.terms import text
from tfdoctor.terms.humanize import NEAR, counted, location, place
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Edit, Errored, Finding, Healthy, NotApplicable, PlaceKind, Remark, Severity

KNOWN = "known (in the baseline)"


def finding(result: Result) -> Finding:
    """Return the outcome of a result that is a finding."""
    if not isinstance(result.outcome, Finding):
        raise TypeError(f"{result.rule.name} is no finding")
    return result.outcome


def summary(result: Result) -> str:
    """Return what a finding says is wrong."""
    return text.sentence(finding(result).summary)


def names(entry: Entry) -> list[str]:
    """Return the rule of an entry and those that show the same fault."""
    return [text.name(one.rule.name) for one in (entry.result, *entry.symptoms, *entry.same)]


def rules(entry: Entry) -> str:
    """Return the same in words."""
    how = ("", *("a cause of " for _ in entry.symptoms), *("also " for _ in entry.same))
    return ", ".join(map("".join, zip(how, names(entry), strict=True)))


def severity(entry: Entry) -> str:
    """Return "critical", "warning" or "note"; "" where nothing decides it."""
    decided = entry.priced.severity or finding(entry.result).severity
    return decided.word if decided else ""


def what(result: Result) -> str:
    """Return the first change, and how many like it at other places the saving counts; else what is wrong."""
    found = finding(result)
    if not found.remedies:
        return summary(result)
    also = counted(found.alike, "more change") if found.alike else ""
    return joined(text.capitalized(found.remedies[0].action), also, by=", and ")


def known(entry: Entry) -> str:
    """Return words that say so, where all of a finding is in the baseline."""
    return KNOWN if all(one.known for one in (entry.result, *entry.same, *entry.symptoms)) else ""


def saving(entry: Entry, diagnosis: Diagnosis) -> tuple[str, str]:
    """Return what a change saves, and each time where that is of the run; "" where no number is known.

    Either says in which other changes it is included, where the sum has those instead.
    """
    of_run = _of_run(entry.priced, diagnosis)
    others = entry.run_included_in if of_run else entry.included_in
    included = f"included in {listed(others)}" if others else ""
    if of_run is None:
        return joined(saves(entry.priced.saving), included), ""
    return of_run[0], joined(of_run[1], included)


def _of_run(result: Result, diagnosis: Diagnosis) -> tuple[str, str] | None:
    return run_saving(result.run, result.saving, diagnosis.run, each(diagnosis))


def own_saving(result: Result, entry: Entry, diagnosis: Diagnosis) -> str:
    """Return what a finding of an entry saves; "" where that is the saving of the entry."""
    (amount, _) = _of_run(result, diagnosis) or (saves(result.saving), "")
    return "" if result is entry.priced else amount


def after(entry: Entry, limit: int = text.NAME_LIMIT) -> str:
    """Return the rules to follow first for the saving, each in so many characters; "" of none."""
    saving = entry.priced.saving
    rules = saving.after if saving and saving.ms_per_step > 0 else ()
    return ", ".join(text.shorten(text.name(rule), limit) for rule in rules)


BY_TRIAL = "the severity follows what was measured"


def trial(entry: Entry, trials: Trials | None) -> tuple[Trial, str] | None:
    """Return the trial of an entry's change alone, and how its promise and severity follow what was measured."""
    for one in (entry.result, *entry.same, *entry.symptoms):
        for row in trials.rows if trials else ():
            if row.rules == (one.rule.name,):
                lowered = BY_TRIAL if is_lowered(entry.priced) else ""
                return row, joined(against(row.prediction, row.measured), lowered, by="; ")
    return None


# Of the finding of a general rule.
ONLY_TAKES = "A change saves at most this time: it may spare a part of it alone."


def how(entry: Entry) -> str:
    """Return how the saving was computed, or why none was."""
    priced = entry.priced
    if saved := [text.sentence(one.how) for one in (priced.run, priced.saving) if one]:
        told = joined(*saved, by=" ")
    elif priced.takes is not None:
        told = ONLY_TAKES
    elif finding(entry.result).effects:
        told = "No saving was computed: the traced steps are too few, or tracing slows them too much."
    else:
        told = "No saving was computed: this finding states no effect on the step time."
    return joined(told, energy_saved(priced.energy), by=" ")


class Change(Record):
    """One change to make, with its code."""

    action: str
    code: str  # an example, or the user's own lines as they will be
    where: str
    before: str = ""  # the user's own lines as they are, when they are known
    begins: str = ""  # where these lines begin, if that is another line than ``where``

    @property
    def diff(self) -> str:
        """The lines that go and those that come, marked as in a diff; "" for an example."""
        old, new = self.before.splitlines(), self.code.splitlines()
        return "\n".join(line.rstrip() for line in ndiff(old, new) if not line.startswith("? ")) if old else ""


def changes(result: Result) -> Iterator[Change]:
    """Yield the changes; the first one is where the finding is, as in every list of findings."""
    where = place(result.place)
    for remedy in finding(result).remedies:
        edit, caveat = remedy.edit or remedy.by_hand, f" ({remedy.changes})" if remedy.changes else ""
        action, at = text.capitalized(remedy.action + caveat), where or location(remedy.at)
        where = ""
        if edit and edit.before:
            begins = location(edit.at)
            elsewhere = begins if at and begins != at else ""
            yield Change(action, text.block(edit.after), at or begins, text.block(edit.before), elsewhere)
        else:
            yield Change(action, text.block(remedy.code), at)


OUTCOMES = ("Healthy", "Not checked", "Failed: defects of tfdoctor", "Failed: your own rules")


def by_outcome(diagnosis: Diagnosis) -> Mapping[str, list[Result]]:
    """Return the results of the rules that found no fault, by `OUTCOMES`, in the order of the diagnosis."""
    kinds, own = (Healthy, NotApplicable, Errored), set(diagnosis.settings.own)
    groups: dict[str, list[Result]] = {title: [] for title in OUTCOMES}
    for result in diagnosis.results:
        if isinstance(result.outcome, kinds):
            failed_own = isinstance(result.outcome, Errored) and result.rule.name in own
            groups[OUTCOMES[kinds.index(type(result.outcome)) + failed_own]].append(result)
    return groups


def said(result: Result) -> str:
    """Return what a rule that found no fault says."""
    match result.outcome:
        case Errored(error=error):
            return text.prose(error)
        case NotApplicable(reason=told) | Healthy(summary=told) | Finding(summary=told) | Remark(summary=told):
            return text.sentence(told)


# In a code review: each with its file in the repository, and a name that outlives edits.
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


def placed(diagnosis: Diagnosis) -> Iterator[Placed]:
    """Yield the budgets that fail and have a line in a file of the settings, then the entries of the report.

    An entry is at the best of its places that the review can show. A file of another repository, or of an installed
    package, has no place in the review. A file that is not on this machine may be in it: its path is kept if it is
    relative, for jobs run from the root of their repository. GitHub and GitLab take all paths from that root.
    """
    for check in diagnosis.budgets:
        if check.state.failed and check.at:
            yield Placed(
                name=f"{BUDGET}{check.key}",
                path=check.at.path,
                line=max(1, check.at.line),
                severity=Severity.CRITICAL,  # it fails the command
                message=f"Budget {check.key} {budget_state(check)}: {budget_told(check)}.",
            )
    for entry in diagnosis.entries:
        result, outcome = entry.result, finding(entry.result)
        paths = ((one, diagnosis.repository.get(one.path) or _likely(one.path)) for one in result.places)
        best, path = next((found for found in paths if found[1]), (None, ""))
        if best is None:
            continue
        edits = (one.edit for one in outcome.remedies if one.edit and one.edit.replacements and not one.changes)
        yield Placed(
            name=text.name(result.rule.name),
            path=path,
            line=max(1, best.line),
            severity=result.severity or outcome.severity or Severity.NOTE,
            message=_message(entry, diagnosis, best.kind),
            result=result,
            edit=next((edit for edit in edits if edit.at and edit.at.path == best.path), None),
            known=None if diagnosis.baseline is None else bool(known(entry)),
        )


def _likely(path: str) -> str:
    """Return the path in the repository of a file that is not on this machine; "" if it cannot be in one."""
    return "" if ELSEWHERE.match(path) or INSTALLED & set(PurePosixPath(path).parts) else path


def _message(entry: Entry, diagnosis: Diagnosis, shown: PlaceKind) -> str:
    """Return what is wrong, what to change, what that saves, and what is at the line if it is not its own."""
    told, change = summary(entry.result), text.sentence(what(entry.result))
    saved, own, near = joined(*saving(entry, diagnosis)), entry.result.place, ""
    if shown is not PlaceKind.LINE:
        known = own is not None and own.kind is PlaceKind.LINE
        line = f"The line, {place(own)}, is in no file of the repository" if known else "The line is unknown"
        near = f"{line}: this is the {NEAR[shown]}."
    return joined(told, change if change != told else "", f"Saves {saved}." if saved else "", near, by=" ")
