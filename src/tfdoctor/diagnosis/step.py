"""The training step: its time, its parts, what explains each, and what ran when in it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from tfdoctor.terms.json_form import AllOf, MaybePositive, Ms, Named, OmitDefault, OneUnit, Positive, Signed
from tfdoctor.terms.kinds import TRACED_LONGER, StepSource
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Quantity
from tfdoctor.terms.verdict import Location

# The parts of a step, in display order.
PARTS = ("input", "transfer", "host", "device", "collective", "between", "unknown")
Parts = Annotated[Mapping[str, float], AllOf(PARTS)]  # Times by keys of PARTS, in ms; {} where they are unknown
# Times the traced step, from which on the untraced one is said: tracing makes no step shorter, so few traced steps
# stand for a run whose others are that much longer.
UNTRACED_LONGER = 1.25


def untraced_beside(traced_ms: float | None, untraced_ms: float | None) -> float | None:
    """Return the untraced step where it is to be said beside the traced one, which is apart from it; else None."""
    if not traced_ms or not untraced_ms:
        return None
    alike = traced_ms / TRACED_LONGER < untraced_ms < traced_ms * UNTRACED_LONGER
    return None if alike else untraced_ms


class StepRow(Record, kw_only=True):
    """One training step: its number, its time and the parts of its time."""

    number: Signed
    total_ms: Positive
    parts_ms: Parts  # sum to total_ms
    steady: Annotated[bool, Named("typical")]  # counted in the breakdown; False for an outlier


class SlowStepsSummary(Record, kw_only=True):
    """Slow steps that take most of the time of all timed steps, traced or not; times in ms."""

    number: Annotated[int, Named("count")]
    ms: Ms
    timed: Annotated[int, Named("timed_count")]
    timed_ms: Ms
    at_least: Annotated[bool, OmitDefault()] = False  # more may be slow: only the longest untraced ones are known


class StepsSummary(Record, kw_only=True):
    """The times of the steps. A step lasts until the next one starts, so it includes ``between``."""

    source: StepSource  # how the steps were found
    missing: str = ""  # why there are none
    rows: tuple[StepRow, ...] = ()  # one per call; with steps_per_execution a call is several steps
    count: int = 0
    median_ms: Ms | None = None
    mean_ms: Ms | None = None
    p10_ms: Ms | None = None
    p90_ms: Ms | None = None
    between_ms: Ms | None = None
    stalled: int = 0  # long steps that wait for input again and again, which ``step_ms`` contains
    step_ms: MaybePositive = None  # the median; the mean without outliers where steps are stalled
    breakdown_ms: Parts = field(default_factory=dict)  # sums to step_ms
    untraced_ms: MaybePositive = None  # the step without the profiler's cost, where it is much
    untraced_breakdown_ms: Parts = field(default_factory=dict)  # sums to untraced_ms
    slow: SlowStepsSummary | None = None  # None: slow steps do not take most of the time
    too_few: bool = False  # for a saving, and for a finding above a note

    @property
    def shown_ms(self) -> float | None:
        """The step that the report is about: without the profiler's cost where that is much."""
        traced = self.median_ms if self.step_ms is None else self.step_ms
        return traced if self.untraced_ms is None else self.untraced_ms

    @property
    def shown_breakdown_ms(self) -> Mapping[str, float]:
        """The parts of ``shown_ms``."""
        return self.breakdown_ms if self.untraced_ms is None else self.untraced_breakdown_ms


class AccountState(StrEnum):
    """Whether the time of a part of the step is explained."""

    NAMED = "named"  # findings name it
    NECESSARY = "necessary"  # it is necessary work, with what findings name of it
    UNEXPLAINED = "unexplained"


class Seen(Record):
    """What was seen in a part of the step: a line of the user's, an operation, a stage or a thread."""

    what: str
    amount: Annotated[Quantity, OneUnit(), Named("value")]  # ms per step, or the share of the stack samples
    at: Location | None = None


class Account(Record, kw_only=True):
    """What explains the time of a large part of the step; each such part has one account."""

    part: str  # of PARTS
    total_ms: Annotated[Ms, Named("ms")]
    state: AccountState
    rules: tuple[str, ...] = ()  # whose findings name time of the part
    why: tuple[str, ...] = ()  # sentences: why time of the part is necessary work, or what delayed it
    unexplained_ms: Ms = 0.0  # what neither findings nor necessary work explain
    seen: tuple[Seen, ...] = ()  # in a part without a finding


class TimelineBar(Record):
    """Work, or several pieces of work too short to be told apart; times in ms from the start of the step."""

    start_ms: Ms
    duration_ms: Ms
    part: str  # of PARTS
    name: str  # what ran; of several pieces the longest
    pieces: int = 1
    rules: tuple[str, ...] = ()  # whose findings are about this work; of several pieces likewise


class TimelineLane(Record):
    """Bars that do not overlap, in the order of their starts."""

    name: str
    bars: tuple[TimelineBar, ...]


class Timeline(Record, kw_only=True):
    """What ran when in one typical step: the parts of the step, then its input and its devices."""

    number: Signed  # of the step
    total_ms: Ms
    lanes: tuple[TimelineLane, ...]
    hidden: int = 0  # pieces of work that ran beside more others than there are lanes
