"""A rule with its outcome, its savings and its edits."""

from typing import Annotated

from tfdoctor.diagnosis.energy import EnergySaving
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.savings import RunSaving, Saving, Takes
from tfdoctor.diagnosis.trials import Measured
from tfdoctor.terms.json_form import OmitDefault
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Location, Outcome, Place, Severity


class Replacement(Record):
    """New text in place of what lies between two places of a file; lines and columns from 1, in characters."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Edit(Record):
    """A remedy as an edit of the user's own lines; "" before and after where it could not be made.

    ``missing`` is a clause that says why it is not in the patch; "" when it is.
    """

    at: Location | None  # the first line that changes
    before: str = ""  # the lines as they are, without the indent they share
    after: str = ""
    missing: Annotated[str, OmitDefault()] = ""
    replacements: Annotated[tuple[Replacement, ...], OmitDefault()] = ()  # the same, exactly


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
