"""Budgets, the baseline, and the settings of the user."""

from enum import StrEnum

from tfdoctor.terms.json_form import Number
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Location


class BudgetState(StrEnum):
    """What a run shows of a budget."""

    MET = "met"
    EXCEEDED = "exceeded"  # the whole interval is beyond the limit
    UNCLEAR = "unclear"  # undecided: the interval holds the limit
    UNKNOWN = "unknown"  # not measured

    @property
    def failed(self) -> bool:
        """Whether the command fails: also for what was not measured, because a gate must not pass unseen."""
        return self in (BudgetState.EXCEEDED, BudgetState.UNKNOWN)

    @property
    def undecided(self) -> bool:
        """Whether the limit lies within the interval: the run neither keeps to it nor breaks it for certain."""
        return self is BudgetState.UNCLEAR


class Measured95(Record):
    """A figure with its 95 % interval; one that is known only to be in the interval is None."""

    value: Number | None = None
    low: Number | None = None  # None where there is one figure, without an interval
    high: Number | None = None
    why: str = ""  # why the value is unknown, as a clause


class BudgetCheck(Measured95, kw_only=True):
    """A budget of the user, and what the run shows of it."""

    key: str  # in the settings: "step-ms"
    limit: Number
    unit: Unit
    at_least: bool  # the limit is the smallest value that meets the budget, not the largest
    state: BudgetState
    at: Location | None = None  # the key in the settings, by its path in the repository


class KnownFinding(Record, order=True):
    """A finding as a baseline has it: by rule and file, because lines and sentences change with the program."""

    rule: str
    file: str  # its path in the repository, "" for a finding without a place


class BaselineUse(Record, kw_only=True):
    """The baseline that the findings were compared with."""

    file: str
    gone: tuple[KnownFinding, ...] = ()  # in the baseline, and found no more


class Off(Record):
    """A rule that the user switched off."""

    rule: str
    title: str
    why: str  # "ignored by pyproject.toml"


class LimitSet(Record):
    """A limit of a rule that the user changed."""

    rule: str
    name: str
    value: Number
    default: Number
    by: str  # "pyproject.toml"


class Settings(Record, kw_only=True):
    """The user's settings for the rules; empty without any."""

    off: tuple[Off, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    own: tuple[str, ...] = ()  # names of the user's own rules that were applied
