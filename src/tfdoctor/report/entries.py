"""One entry for each cause: a finding with its change, and the findings that show the same fault.

A finding that bounds the time of a whole stage (`input-bound`) shows the same fault as those about parts of that
stage, if these explain most of it; two findings whose edits are the same ask for one change. Doubts about the
recording are no fault of the run: the trust in the report says them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis import Diagnosis, Edit, Order, Relationship, Result
from tfdoctor.rule import Topic
from tfdoctor.verdict import Finding, Remedy

MOST = 0.5
"""Share of a stage's ceiling that its causes must save: below it, most of its time has another cause."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding whose change is to be made, and those that show the same fault."""

    result: Result
    symptoms: tuple[Result, ...] = ()  # they bound the time of the stage that it is about
    same: tuple[Result, ...] = ()  # they ask for the same edit

    @property
    def names(self) -> set[str]:
        """The rules of all of them."""
        return {result.rule.name for result in (self.result, *self.symptoms, *self.same)}


def entries(diagnosis: Diagnosis) -> tuple[Entry, ...]:
    """Return the entries in the order of their findings."""
    findings = {result.rule.name: result for result in diagnosis.results if _is_fault(result)}
    symptoms = _symptoms(findings, diagnosis.order)
    causes = [result for name, result in findings.items() if name not in symptoms]
    return tuple(
        Entry(
            first,
            tuple(
                findings[name] for name, parts in symptoms.items() if _named(first, same) & parts
            ),
            tuple(same),
        )
        for first, *same in _by_change(causes)
    )


def _is_fault(result: Result) -> bool:
    """Say whether a result is a finding about the run; a rule of the user's own always is."""
    about_run = result.rule.topic is not Topic.RECORDING or result.rule.own
    return isinstance(result.outcome, Finding) and about_run


def _named(first: Result, same: Iterable[Result]) -> set[str]:
    return {result.rule.name for result in (first, *same)}


def _symptoms(findings: dict[str, Result], order: Order | None) -> dict[str, set[str]]:
    """Return the findings that others explain, with those others."""
    ceilings = {
        relation.rule: {other for other in relation.others if other in findings}
        for relation in (order.relations if order else ())
        if relation.kind is Relationship.CEILING and relation.rule in findings
    }
    return {
        name: parts
        for name, parts in ceilings.items()
        if parts and _explain([findings[part] for part in parts], findings[name])
    }


def _explain(causes: Sequence[Result], symptom: Result) -> bool:
    """Say whether causes explain most of what a symptom bounds, as far as savings are known."""
    saved = [cause.saving.per_step.value for cause in causes if cause.saving]
    if symptom.saving is None or len(saved) < len(causes):
        return True
    return sum(saved) >= MOST * symptom.saving.per_step.value


def _by_change(results: Iterable[Result]) -> list[list[Result]]:
    """Return the findings in groups whose first change is the same."""
    groups: dict[object, list[Result]] = {}
    for result in results:
        groups.setdefault(_first_change(result), []).append(result)
    return list(groups.values())


def _first_change(result: Result) -> object:
    """Return what the first change of a finding does to the user's lines; where that is not known, its rule."""
    remedies = result.outcome.remedies if isinstance(result.outcome, Finding) else ()
    edited = _edited(next(iter(result.edits), None))
    return edited or (_edit_at(remedies[0]) if remedies else None) or result.rule.name


def _edited(edit: Edit | None) -> object | None:
    return (edit.at, edit.before, edit.after) if edit and (edit.before or edit.after) else None


def _edit_at(remedy: Remedy) -> object | None:
    return (remedy.edit_id, remedy.at) if remedy.edit_id and remedy.at else None
