"""Results as the page shows them: findings with their changes, and what the other rules said."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import ndiff
from itertools import zip_longest

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry, entries
from tfdoctor.diagnosis.rank import is_lowered
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.report import energy, money, sentences, tables
from tfdoctor.report.gates import KNOWN
from tfdoctor.report.order import listed
from tfdoctor.report.run.words import SavingWords, saving_words
from tfdoctor.report.trials import TrialLine, TrialSection
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, location, place
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, Remark


class ChangeEntry(Record):
    """One change to make, with its code."""

    action: str
    code: str  # an example, or the user's own lines as they will be
    where: str
    before: str = ""  # the user's own lines as they are, when they are known
    begins: str = ""  # where these lines begin, if that is another line than ``where``

    @property
    def diff(self) -> str:
        """The lines that go and those that come, marked as in a diff; "" for an example."""
        if not self.before:
            return ""
        old, new = self.before.splitlines(), self.code.splitlines()
        return "\n".join(line.rstrip() for line in ndiff(old, new) if not line.startswith("? "))


class Related(Record, kw_only=True):
    """A finding that shows the same fault as another, as text."""

    rule: str
    summary: str
    saves: str
    lines: tuple[tables.MeasureRow, ...]
    grids: tuple[tables.Grid, ...]


class Fault(Record, kw_only=True):
    """A finding as text, with those that show the same fault."""

    rule: str
    title: str
    severity: str  # "critical", "warning", "note", or "" when nothing decides it
    summary: str
    what: str  # the first change to make
    where: str  # the first place it belongs to
    saving: SavingWords  # its amount is "" when no number is known
    energy: str  # what it saves of energy, in few words; "" where no counter measured it
    trial: TrialLine | None  # what its edit saved when it was tried
    takes: str  # the time that a general finding names, in place of a saving; "" for any other
    after: tuple[str, ...]  # rules to follow first for that saving
    how: str
    lines: tuple[tables.MeasureRow, ...]
    grids: tuple[tables.Grid, ...]
    changes: tuple[ChangeEntry, ...]
    by: Rule  # with its documentation in Markdown; tfdoctor has no page of a rule of the user's own
    symptoms: tuple[Related, ...] = ()  # they bound the time of the stage that this is about
    same: tuple[Related, ...] = ()  # they ask for the same edit
    money: bool = False  # what the run costs: no change to make
    known: str = ""  # words that say so, where all of it is in the baseline

    @property
    def names(self) -> tuple[str, ...]:
        """Its rule and those that show the same fault."""
        return (self.rule, *(related.rule for related in (*self.symptoms, *self.same)))

    @property
    def rules(self) -> str:
        """The same in words."""
        causes = [f"a cause of {related.rule}" for related in self.symptoms]
        also = [f"also {related.rule}" for related in self.same]
        return ", ".join([self.rule, *causes, *also])


class Note(Record, kw_only=True):
    """A rule that found no fault: what it says, and the numbers or the traceback behind it."""

    rule: str
    title: str
    text: str
    lines: tuple[tables.MeasureRow, ...] = ()
    grids: tuple[tables.Grid, ...] = ()
    traceback: str = ""


class ResultGroups(Record, kw_only=True):
    """The results of all rules by outcome, in the order of the diagnosis; what the run costs comes last."""

    faults: tuple[Fault, ...]
    healthy: tuple[Note, ...]
    unchecked: tuple[Note, ...]
    errored: tuple[Note, ...]
    own_errored: tuple[Note, ...]  # failures of the user's own rules


def grouped(diagnosis: Diagnosis, tried: TrialSection | None = None) -> ResultGroups:
    """Return the results as entries of the page, with what was measured of the findings' edits."""
    faults = [fault(entry, diagnosis, tried) for entry in entries(diagnosis)]
    own = set(diagnosis.settings.own)
    healthy: list[Note] = []
    unchecked: list[Note] = []
    errored: list[Note] = []
    own_errored: list[Note] = []
    for result in diagnosis.results:
        match result.outcome:
            case Healthy(summary=summary, evidence=evidence):
                lines, grids = tables.evidence(evidence)
                note = _note(result, text.sentence(summary))
                healthy.append(replace(note, lines=lines, grids=grids))
            case NotApplicable(reason=reason):
                unchecked.append(_note(result, text.sentence(reason)))
            case Errored(error=error, traceback=trace):
                failed = own_errored if result.rule.name in own else errored
                failed.append(_note(result, text.prose(error), text.block(trace)))
            case Finding() | Remark():
                continue  # an entry has it, or the trust
    return ResultGroups(
        faults=tuple(sorted(faults, key=lambda fault: fault.money)),
        healthy=tuple(healthy),
        unchecked=tuple(unchecked),
        errored=tuple(errored),
        own_errored=tuple(own_errored),
    )


def _note(result: Result, words: str, traceback: str = "") -> Note:
    rule, title = text.name(result.rule.name), text.name(result.rule.doc.title)
    return Note(rule=rule, title=title, text=words, traceback=traceback)


def fault(entry: Entry, diagnosis: Diagnosis | None = None, tried: TrialSection | None = None) -> Fault:
    """Return an entry of a diagnosis as text; without the diagnosis, an example's."""
    result, finding = entry.result, _finding(entry.result)
    rule, priced = result.rule, entry.priced
    severity = priced.severity or finding.severity
    lines, grids = tables.evidence(finding.evidence)
    summary, where = text.sentence(finding.summary), place(result.place)
    every = (result, *entry.same, *entry.symptoms)
    saves = priced.saving is not None and priced.saving.per_step.value > 0
    return Fault(
        rule=text.name(rule.name),
        title=text.name(rule.doc.title),
        severity=severity.name.lower() if severity else "",
        summary=summary,
        what=_first_change(finding) or summary,
        where=where,
        saving=_saving(entry, diagnosis),
        energy=energy.saves_briefly(priced.energy),
        trial=_trial(tried, every, priced),
        takes=sentences.takes(result.takes),
        after=tuple(map(text.name, priced.saving.after)) if priced.saving and saves else (),
        how=" ".join(filter(None, (_how(priced, finding), energy.saves(priced.energy)))),
        lines=lines,
        grids=grids,
        changes=tuple(_changes(result, finding, where)),
        by=rule,
        symptoms=tuple(_related(one, diagnosis, priced) for one in entry.symptoms),
        same=tuple(_related(one, diagnosis, priced) for one in entry.same),
        money=money.is_about_money(result),
        known=KNOWN if all(one.known for one in every) else "",
    )


def _trial(tried: TrialSection | None, every: Iterable[Result], priced: Result) -> TrialLine | None:
    """Return what was measured of an entry's change, and that its severity follows that, where it does."""
    line = tried.of(one.rule.name for one in every) if tried else None
    if line is None or not is_lowered(priced):
        return line
    return replace(line, remark="; ".join(filter(None, (line.remark, BY_TRIAL))))


BY_TRIAL = "the severity follows what was measured"


def _first_change(finding: Finding) -> str:
    """Return the first change, and how many like it at other places the saving counts; "" without any."""
    if not finding.remedies:
        return ""
    also = f", and {counted(finding.alike, 'more change')}" if finding.alike else ""
    return f"{text.capitalized(finding.remedies[0].action)}{also}"


def _saving(entry: Entry, diagnosis: Diagnosis | None) -> SavingWords:
    """Return what a change saves, and each time where that is of the run.

    Either says in which other changes it is included, where the sum has those instead.
    """
    words = _saving_words(entry.priced, diagnosis)
    if words is None:
        saves = sentences.saves(entry.priced.saving)
        return SavingWords(_with_included(saves, entry.included_in), "")
    return SavingWords(words.amount, _with_included(words.each, entry.run_included_in))


def _saving_words(result: Result, diagnosis: Diagnosis | None) -> SavingWords | None:
    if diagnosis is None:
        return None
    each = sentences.each(diagnosis)
    return saving_words(result.run, result.saving, diagnosis.run, each)


def _with_included(saved: str, rules: tuple[str, ...]) -> str:
    included = f"included in {listed(rules)}" if rules else ""
    return ", ".join(filter(None, (saved, included)))


def _finding(result: Result) -> Finding:
    if not isinstance(result.outcome, Finding):
        raise TypeError(f"{result.rule.name} is no finding")
    return result.outcome


def _related(result: Result, diagnosis: Diagnosis | None, priced: Result) -> Related:
    """Return a finding of an entry beside its first; its saving where that of the entry is another's."""
    finding = _finding(result)
    lines, grids = tables.evidence(finding.evidence)
    words = _saving_words(result, diagnosis)
    return Related(
        rule=text.name(result.rule.name),
        summary=text.sentence(finding.summary),
        saves="" if result is priced else words.amount if words else sentences.saves(result.saving),
        lines=lines,
        grids=grids,
    )


def _changes(result: Result, finding: Finding, where: str) -> Iterator[ChangeEntry]:
    """Yield the changes; the first one is where the finding is, as in every list of findings."""
    for remedy, edit in zip_longest(finding.remedies, result.edits):
        caveat = f" ({remedy.changes})" if remedy.changes else ""
        action, at = text.capitalized(remedy.action + caveat), where or location(remedy.at)
        where = ""
        if edit is None or not edit.before:
            yield ChangeEntry(action, text.block(remedy.code), at)
        else:
            begins, before = location(edit.at), text.block(edit.before)
            at = at or begins
            elsewhere = begins if begins != at else ""
            yield ChangeEntry(action, text.block(edit.after), at, before, elsewhere)


# Of the finding of a general rule.
ONLY_TAKES = "A change saves at most this time: it may spare a part of it alone."


def _how(result: Result, finding: Finding) -> str:
    saving = result.saving
    if result.run is not None:
        ways = (result.run.how, saving.how if saving else "")
        return " ".join(filter(None, map(text.sentence, ways)))
    if saving is not None:
        return text.sentence(saving.how)
    if result.takes is not None:
        return ONLY_TAKES
    if finding.effects:
        return "No saving was computed: the traced steps are too few, or tracing slows them too much."
    return "No saving was computed: this finding states no effect on the step time."
