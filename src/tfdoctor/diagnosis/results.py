"""A rule with its outcome, its savings and its edits."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, defstruct
from msgspec.structs import asdict, fields

from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import EnergySaving, RunSaving, Saving, Takes
from tfdoctor.diagnosis.trials import Measured
from tfdoctor.terms.json_form import Count, Sometimes, columns, row_form
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import (
    Errored,
    Evidence,
    Finding,
    Healthy,
    Location,
    NotApplicable,
    Outcome,
    Place,
    PlaceKind,
    Remark,
    Remedy,
    Severity,
    SeverityWord,
)  # fmt: skip


class Replacement(Record):
    """New text in place of what lies between two places of a file; lines and columns from 1, in characters."""

    start: tuple[Count, Count]
    end: tuple[Count, Count]
    text: str


class Edit(Record):
    """A remedy as an edit of the user's own lines; "" before and after where it could not be made.

    ``missing`` is a clause that says why it is not in the patch; "" when it is.
    """

    at: Location | None  # the first line that changes
    before: str = ""  # the lines as they are, without the indent they share
    after: str = ""
    missing: Sometimes[str] = ""
    replacements: Sometimes[tuple[Replacement, ...]] = ()  # the same, exactly


class Result(Record, kw_only=True):
    """A rule and its outcome."""

    rule: Rule
    outcome: Outcome
    saving: Saving | None = None
    takes: Takes | None = None  # of a general finding, in place of a saving
    measured: Measured | None = None  # what its edit saved when it was tried
    energy: EnergySaving | None = None  # the same of energy, where a counter measured it
    run: RunSaving | None = None  # the same of the run, where the run is known
    severity: Severity | None = None  # of a finding, resolved from its saving or its time
    edits: tuple[Edit, ...] = ()  # one for each remedy of a finding; () when none was tried
    known: bool | None = None  # whether a finding about the run is in the baseline; None without one
    fallbacks: tuple[Place, ...] = ()  # where a finding is shown that has no line, the best first

    @property
    def places(self) -> tuple[Place, ...]:
        """Where a finding can be shown, the best first: at its own line, then at the fallbacks."""
        finding = self.outcome if isinstance(self.outcome, Finding) else None
        edited = (edit.at for edit in self.edits if edit.at)
        at = (finding.at or next(edited, None)) if finding else None
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


OUTCOMES: Mapping[OutcomeWord, type[Struct]] = MappingProxyType(
    dict(zip(OutcomeWord, (Finding, Remark, Healthy, NotApplicable, Errored), strict=True))
)
# Fields of an outcome that stand beside the result's own; savings are computed from the others.
SHOWN = ("summary", "evidence", "remedies")
UNSAID = "the report does not say why"  # Of an edit that is in no patch, in reports of version 0.1.0
COMPUTED = ("saving", "run", "takes", "measured", "energy", "known")

if TYPE_CHECKING:
    Stated = Any
else:
    _stated = {row[0]: row for kind in (Finding, Healthy) for row in columns(kind) if row[0] not in SHOWN}
    Stated = defstruct("Stated", [row[1:] for row in _stated.values()], bases=(Record,), kw_only=True)


# Of a field that a row of this type has whatever its value is, and the same record elsewhere does not.
NOT_EVERYWHERE = Meta(extra_json_schema={"sometimes": "by the outcome"})


class EditRow(Edit):
    """An edit, and whether it is in the patch."""

    in_patch: Annotated[bool, NOT_EVERYWHERE] = True


class RemedyRow(Remedy):
    """A remedy with its edit; apart, why it has only an example."""

    edit: Annotated[EditRow | None, NOT_EVERYWHERE] = None
    by_hand: Sometimes[Edit | None] = None


class ResultRow(Record, kw_only=True):
    """The result of a rule in a report: its outcome with what was computed of it, flat."""

    rule: str
    title: str = ""
    topic: Topic
    own: Sometimes[bool] = False
    general: Sometimes[bool] = False
    outcome: OutcomeWord
    saving: Saving | None = None
    run: RunSaving | None = None
    takes: Takes | None = None
    measured: Measured | None = None
    energy: Sometimes[EnergySaving | None] = None
    severity: SeverityWord | None = None
    summary: str
    reason: str
    traceback: Sometimes[str] = ""
    known: bool | None = None
    at: Place | None = None
    fallbacks: Sometimes[tuple[Place, ...]] = ()
    evidence: tuple[Evidence, ...]
    remedies: tuple[RemedyRow, ...]
    stated: Sometimes[Stated] = Stated()


def _row_of(result: Result) -> ResultRow:
    rule, outcome = result.rule, result.outcome
    own = {one.name: getattr(outcome, one.name) for one in fields(outcome)}
    shown = {"summary": "", "reason": own.pop("error", ""), "evidence": (), "remedies": ()}
    stated = {name: own.pop(name) for name in Stated.__struct_fields__ if name in own}
    if isinstance(outcome, Finding):
        own["severity"] = result.severity or outcome.severity
        own |= {"at": result.place, "fallbacks": result.fallbacks}
        pairs = zip_longest(outcome.remedies, result.edits[: len(outcome.remedies)])
        own["remedies"] = tuple(_remedy_row(remedy, edit) for remedy, edit in pairs)
    return ResultRow(
        rule=rule.name, title=rule.doc.title, topic=rule.topic, own=rule.own, general=rule.general,
        outcome=next(word for word, kind in OUTCOMES.items() if isinstance(outcome, kind)),
        stated=Stated(**stated), **{**shown, **own}, **{name: getattr(result, name) for name in COMPUTED},
    )  # fmt: skip


def _remedy_row(remedy: Remedy, edit: Edit | None) -> RemedyRow:
    if edit is None:
        return RemedyRow(**asdict(remedy))
    if edit.before or edit.after:
        return RemedyRow(**asdict(remedy), edit=EditRow(**asdict(edit), in_patch=not edit.missing))
    return RemedyRow(**asdict(remedy), by_hand=edit)


def _result_of(row: ResultRow) -> Result:
    outcome = OUTCOMES[row.outcome]
    given = {**asdict(row.stated), **asdict(row), "error": row.reason}
    given["severity"] = row.stated.severity
    given["remedies"] = tuple(_as(Remedy, asdict(remedy)) for remedy in row.remedies)
    edits = [_edit_of(remedy.edit or remedy.by_hand) for remedy in row.remedies]
    # Earlier reports have the only place known of a finding without a line.
    fallbacks = row.fallbacks or ((row.at,) if row.at and row.at.kind is not PlaceKind.LINE else ())
    rule = Rule.named(row.rule, row.topic, row.title or row.rule, own=row.own, general=row.general)
    return Result(
        rule=rule, outcome=_as(outcome, given), severity=row.severity, fallbacks=fallbacks,
        edits=tuple(edit for edit in edits if edit) if all(edits) else (),
        **{name: getattr(row, name) for name in COMPUTED},
    )  # fmt: skip


def _edit_of(edit: Edit | None) -> Edit | None:
    if edit is None:
        return None
    left_out = isinstance(edit, EditRow) and not edit.in_patch and not edit.missing
    found: Edit = _as(Edit, asdict(edit) | ({"missing": UNSAID} if left_out else {}))
    return found


def _as(kind: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the kind
    """Return a record of a kind with those of the values that it has."""
    return kind(**{one.name: values[one.name] for one in fields(kind)})


if TYPE_CHECKING:
    ResultForm = Result
else:
    ResultForm = row_form(Result, ResultRow, _row_of, _result_of)
