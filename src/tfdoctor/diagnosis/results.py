"""A rule with its outcome, its savings and its edits."""

# ruff: noqa: F403, F405 - one import of what rules say
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import defstruct
from msgspec.structs import asdict

from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import EnergySaving, RunSaving, Saving, Takes
from tfdoctor.diagnosis.trials import Measured
from tfdoctor.terms.json_form import Sometimes, columns, row_form
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.verdict import *


class Computed(Record, kw_only=True):
    """What was computed of a rule's outcome; None where it has none."""

    saving: Saving | None = None
    run: RunSaving | None = None  # the same of the run, where the run is known
    takes: Takes | None = None  # of a general finding, in place of a saving
    measured: Measured | None = None  # what its edit saved when it was tried
    energy: Sometimes[EnergySaving | None] = None  # the same of energy, where a counter measured it
    known: bool | None = None  # whether a finding about the run is in the baseline; None without one
    fallbacks: Sometimes[tuple[Place, ...]] = ()  # where a finding is shown that has no line, the best first


class Result(Computed, kw_only=True):
    """A rule and its outcome."""

    rule: Rule
    outcome: Outcome
    severity: Severity | None = None  # of a finding, resolved from its saving or its time

    @property
    def finding(self) -> Finding | None:
        """The outcome, where it is a finding."""
        return self.outcome if isinstance(self.outcome, Finding) else None

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What the changes of a finding do to the step."""
        return self.outcome.effects if isinstance(self.outcome, Finding) else ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """One for each remedy of a finding; () when none was tried."""
        remedies = self.finding.remedies if self.finding else ()
        return tuple(edit for remedy in remedies if (edit := remedy.edit or remedy.by_hand))

    @property
    def places(self) -> tuple[Place, ...]:
        """Where a finding can be shown, the best first: at its own line, then at the fallbacks."""
        own = self.finding.at if self.finding else None
        at = own or next((edit.at for edit in self.edits if edit.at), None)
        return (*([Place(at.path, at.line)] if at else []), *self.fallbacks)

    @property
    def place(self) -> Place | None:
        """Where a finding is shown; a review, which needs a file of the repository, may show another place."""
        return next(iter(self.places), None)


class OutcomeWord(StrEnum):
    """What the outcome of a rule is."""

    FINDING = "finding"
    REMARK = "remark"
    HEALTHY = "healthy"
    NOT_APPLICABLE = "not-applicable"
    ERRORED = "errored"


_kinds = (Finding, Remark, Healthy, NotApplicable, Errored)
OUTCOMES: Mapping[OutcomeWord, type[Outcome]] = dict(zip(OutcomeWord, _kinds, strict=True))
# Fields of an outcome that stand beside the result's own; savings are computed from the others.
SHOWN = ("summary", "evidence", "remedies")
UNSAID = "the report does not say why"  # Of an edit that is in no patch, in reports of version 0.1.0

if TYPE_CHECKING:
    Stated = Any
else:
    _stated = {row[0]: row for kind in (Finding, Healthy) for row in columns(kind) if row[0] not in SHOWN}
    Stated = defstruct("Stated", [row[1:] for row in _stated.values()], bases=(Record,), kw_only=True)


class ResultRow(Computed, kw_only=True):
    """The result of a rule in a report: its outcome with what was computed of it, flat."""

    rule: str
    title: str = ""
    topic: Topic
    own: Sometimes[bool] = False
    general: Sometimes[bool] = False
    outcome: OutcomeWord
    severity: SeverityWord | None = None
    summary: str
    reason: str
    traceback: Sometimes[str] = ""
    at: Place | None = None
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    stated: Sometimes[Stated] = Stated()


def _row_of(result: Result) -> ResultRow:
    rule, outcome = result.rule, result.outcome
    own = asdict(outcome)
    shown = {"summary": "", "reason": own.pop("error", ""), "evidence": (), "remedies": ()}
    stated = {name: own.pop(name) for name in Stated.__struct_fields__ if name in own}
    if isinstance(outcome, Finding):
        own |= {"severity": result.severity or outcome.severity, "at": result.place}
    own |= {"rule": rule.name, "title": rule.doc.title}
    return common(
        ResultRow, result, rule,
        outcome=next(word for word, kind in OUTCOMES.items() if isinstance(outcome, kind)),
        stated=Stated(**stated), **shown | own,
    )  # fmt: skip


def _result_of(row: ResultRow) -> Result:
    given = {**asdict(row.stated), **asdict(row), "error": row.reason, "severity": row.stated.severity}
    kind, fallbacks = OUTCOMES[row.outcome], row.fallbacks
    outcome: Outcome = kind(**{name: given[name] for name in kind.__struct_fields__})
    if isinstance(outcome, Finding):  # of earlier versions a remedy may lack its edit, and an edit its reason
        edits = [remedy.edit or remedy.by_hand for remedy in row.remedies]
        for at, edit in enumerate(edits):
            if edit and edit.in_patch is False and not edit.missing:
                edits[at] = replace(edit, missing=UNSAID)
        outcome = outcome.edited(edits if all(edits) else [None] * len(edits))
    if row.at and row.at.kind is not PlaceKind.LINE and not fallbacks:
        fallbacks = (row.at,)  # earlier reports have the only place known of a finding without a line
    rule = Rule.named(row.rule, row.topic, row.title or row.rule, own=row.own, general=row.general)
    return common(Result, row, rule=rule, outcome=outcome, fallbacks=fallbacks)


if TYPE_CHECKING:
    ResultForm = Result
else:
    ResultForm = row_form(Result, ResultRow, _row_of, _result_of)
