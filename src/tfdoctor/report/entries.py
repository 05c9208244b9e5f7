"""One entry for each cause: a finding with its change, and the findings that show the same fault.

A finding that bounds the time of a whole stage (`input-bound`) shows the same fault as those about parts of that
stage, if these explain most of it; two findings whose edits are the same ask for one change. Doubts about the
recording are no fault of the run: the trust in the report says them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tfdoctor.diagnosis import Diagnosis, Edit, Order, Relationship, Result
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.terms.verdict import Finding, Remedy

MOST = 0.5
"""Share of a stage's ceiling that its causes must save: below it, most of its time has another cause."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding whose change is to be made, and those that show the same fault."""

    result: Result
    symptoms: tuple[Result, ...] = ()  # they bound the time of the stage that it is about
    same: tuple[Result, ...] = ()  # they ask for the same edit
    in_sum: bool = False  # one of the changes that together save what the verdict says
    included_in: tuple[str, ...] = ()  # rules of the sum after which its own saving adds nothing
    in_run_sum: bool = (
        False  # one of the changes that together save what the verdict says of the run
    )
    run_included_in: tuple[str, ...] = ()  # as `included_in`, of the saving of the run

    @property
    def names(self) -> set[str]:
        """The rules of all of them."""
        return self.own | _named(*self.symptoms)

    @property
    def own(self) -> set[str]:
        """The rules of the findings that its change is for."""
        return _named(self.result, *self.same)


def entries(diagnosis: Diagnosis) -> tuple[Entry, ...]:
    """Return the entries in the order of their findings."""
    findings = {result.rule.name: result for result in diagnosis.results if _is_fault(result)}
    symptoms = _symptoms(findings, diagnosis.order)
    causes = [result for name, result in findings.items() if name not in symptoms]
    found = [
        Entry(
            first,
            tuple(
                findings[name] for name, parts in symptoms.items() if _named(first, *same) & parts
            ),
            tuple(same),
        )
        for first, *same in _by_change(causes)
    ]
    return tuple(_in_run_sum(list(_in_sum(found, diagnosis)), diagnosis))


def _in_run_sum(found: Sequence[Entry], diagnosis: Diagnosis) -> Iterator[Entry]:
    """Say the same of the saving of the run."""
    rules = set(diagnosis.run_together.rules if diagnosis.run_together else ())
    told = {name for entry in found if entry.own & rules for name in entry.names}
    for entry in found:
        if entry.own & rules or entry.names & (rules - told):
            yield replace(entry, in_run_sum=True)
        else:
            saving = entry.result.run
            adds_none = rules and saving is not None and saving.total.value > 0
            yield replace(entry, run_included_in=_instead(entry, diagnosis) if adds_none else ())


def _in_sum(found: Sequence[Entry], diagnosis: Diagnosis) -> Iterator[Entry]:
    """Say of each entry whether the saving of all changes has it, and of others with a saving which do instead.

    A symptom in the sum stands for its causes where none of these is.
    """
    rules = set(diagnosis.together.rules if diagnosis.together else ())
    told = {name for entry in found if entry.own & rules for name in entry.names}
    for entry in found:
        if entry.own & rules or entry.names & (rules - told):
            yield replace(entry, in_sum=True)
        else:
            saving = entry.result.saving
            adds_none = rules and saving is not None and saving.per_step.value > 0
            yield replace(entry, included_in=_instead(entry, diagnosis) if adds_none else ())


def _instead(entry: Entry, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the rules after which a change saves nothing more; all of the sum where no single ones are known."""
    relations = diagnosis.order.relations if diagnosis.order else ()
    for relation in relations:
        if relation.kind is Relationship.UNNEEDED and relation.rule == entry.result.rule.name:
            return relation.others
    together = diagnosis.together or diagnosis.run_together
    return together.rules if together else ()


def _is_fault(result: Result) -> bool:
    """Say whether a result is a finding about the run; a rule of the user's own always is."""
    about_run = result.rule.topic is not Topic.RECORDING or result.rule.own
    return isinstance(result.outcome, Finding) and about_run


def _named(*results: Result) -> set[str]:
    return {result.rule.name for result in results}


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
