"""One entry for each cause: a finding with its change, and the findings that show the same fault.

A finding that bounds the time of a whole stage (`input-bound`) shows the same fault as those about parts of that
stage, if these explain most of it; two findings whose edits are the same ask for one change.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Relationship
from tfdoctor.terms.json_form import Sometimes
from tfdoctor.terms.record import Record

if TYPE_CHECKING:
    from tfdoctor.diagnosis import Diagnosis

MOST = 0.5  # Share of a stage's ceiling that its causes must save: below it, most of its time has another cause


class Entry(Record):
    """A finding whose change is to be made, and those that show the same fault."""

    result: Result
    symptoms: tuple[Result, ...] = ()  # they bound the time of the stage that it is about
    same: tuple[Result, ...] = ()  # they ask for the same edit, or are about the same calls
    in_sum: bool = False  # one of the changes that together save what the verdict says
    included_in: tuple[str, ...] = ()  # rules of the sum after which its own saving adds nothing
    in_run_sum: bool = False  # one of the changes that together save what the verdict says of the run
    run_included_in: tuple[str, ...] = ()  # as `included_in`, of the saving of the run

    @property
    def priced(self) -> Result:
        """The finding whose saving is that of the entry: a general rule's has none, but bounds of its stage do."""
        return next((r for r in (self.result, *self.symptoms) if r.saving or r.run), self.result)

    @property
    def names(self) -> set[str]:
        """The rules of all of them."""
        return self.own | _named(*self.symptoms)

    @property
    def own(self) -> set[str]:
        """The rules of the findings that its change is for."""
        return _named(self.result, *self.same)


class EntryRow(Record, kw_only=True):
    """An entry in a report, by the names of rules."""

    rule: str
    symptoms: tuple[str, ...]
    same: tuple[str, ...]
    in_together: bool
    included_in: tuple[str, ...]
    in_run_together: Sometimes[bool | UnsetType] = UNSET


def entries_of(diagnosis: "Diagnosis") -> tuple[Entry, ...]:
    """Return the entries in the order of their findings."""
    findings = {result.rule.name: result for result in diagnosis.results if result.finding}
    told_by = _told_by(findings, diagnosis)
    by_change: dict[object, list[Result]] = defaultdict(list)
    for name, result in findings.items():
        if name not in told_by:
            by_change[_first_change(result)].append(result)
    found: list[Entry] = []
    for first, *same in by_change.values():
        own = _named(first, *same)
        symptoms = (findings[name] for name, causes in told_by.items() if own & causes)
        found.append(Entry(first, tuple(symptoms), tuple(same)))
    ranks = {name: rank for rank, name in enumerate(findings)}
    found.sort(key=lambda entry: ranks[entry.priced.rule.name])
    step, run = (one.rules if one else () for one in (diagnosis.together, diagnosis.run_together))
    # After which rules a change saves nothing more: all of the sum where no single ones are known.
    relations = diagnosis.order.relations if diagnosis.order else ()
    unneeded = {one.rule: one.others for one in reversed(relations) if one.kind is Relationship.UNNEEDED}
    entries = []
    for entry, in_sum, in_run_sum in zip(found, _in_sum(found, {*step}), _in_sum(found, {*run}), strict=True):
        saving, of_run = entry.priced.saving, entry.priced.run
        saves, saves_of_run = saving and saving.ms_per_step > 0, of_run and of_run.ms > 0
        instead = unneeded.get(entry.result.rule.name, step if diagnosis.together else run)
        changed = replace(
            entry,
            in_sum=in_sum,
            included_in=instead if step and saves and not in_sum else (),
            in_run_sum=in_run_sum,
            run_included_in=instead if run and saves_of_run and not in_run_sum else (),
        )
        entries.append(changed)
    return tuple(entries)


def _in_sum(found: Sequence[Entry], rules: set[str]) -> list[bool]:
    """Return of each entry whether these rules have it.

    A symptom among them stands for its causes where none of these is.
    """
    told = {name for entry in found if entry.own & rules for name in entry.names}
    return [bool(entry.own & rules or entry.names & (rules - told)) for entry in found]


def _named(*results: Result) -> set[str]:
    return {result.rule.name for result in results}


def _told_by(findings: dict[str, Result], diagnosis: "Diagnosis") -> dict[str, set[str]]:
    """Return the findings that others explain, with those others whose own saving is known; all where none is.

    They explain most of what the finding bounds, as far as savings are known; those of general rules, which name
    time and no saving, most of the time of its stages. The saving of a symptom is that of a general cause only
    where no specific one is known.
    """
    explained: dict[str, set[str]] = {}
    parts = diagnosis.steps.shown_breakdown_ms
    for relation in diagnosis.order.relations if diagnosis.order else ():
        symptom = findings.get(relation.rule)
        causes = [findings[name] for name in relation.others if name in findings]
        if relation.kind is not Relationship.CEILING or symptom is None or not causes:
            continue
        saved = [cause.saving.ms_per_step for cause in causes if cause.saving]
        named = [cause.takes.ms_per_step for cause in causes if cause.takes]
        bounded = symptom.saving.ms_per_step if symptom.saving else 0.0
        whole = sum(parts.get(stage, 0.0) for stage in {effect.stage for effect in symptom.effects})
        unknown = not symptom.saving or len(saved) + len(named) < len(causes)
        if unknown or sum(saved) >= MOST * bounded or (named and sum(named) >= MOST * whole):
            saving = (cause for cause in causes if cause.saving or cause.run)
            explained[relation.rule] = _named(*saving) or _named(*causes)
    return explained


def _first_change(result: Result) -> object:
    """Return the calls that a finding is about, else what its first change does to the lines, else its rule."""
    finding = result.finding
    if finding and finding.about and finding.at:
        return finding.about, finding.at
    edit = next(iter(result.edits), None)
    if edit and (edit.before or edit.after):
        return edit.at, edit.before, edit.after
    remedy = next(iter(finding.remedies if finding else ()), None)
    return (remedy.edit_id, remedy.at) if remedy and remedy.edit_id and remedy.at else result.rule.name
