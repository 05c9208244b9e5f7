"""The training step: its time, its parts, what explains each, and what ran when in it."""

# ruff: noqa: F403, F405 - one import of the forms of values
from collections.abc import Mapping
from enum import StrEnum
from math import isfinite, isnan
from typing import TYPE_CHECKING, NamedTuple

from msgspec import defstruct
from msgspec.structs import asdict

from tfdoctor.terms.json_form import *
from tfdoctor.terms.kinds import TRACED_LONGER, StepSource
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.run_time import SlowStepsSummary

# The parts of a step, in display order.
PARTS = ("input", "transfer", "host", "device", "collective", "between", "unknown")
_Times = defstruct("Parts", [(part, Ms) for part in PARTS])


def _times(value: Json) -> dict[str, float]:
    """Return the times of a report; {} where none is known."""
    found = asdict(converted(value, _Times))
    return {} if all(map(isnan, found.values())) else found


def _of_all(times: Mapping[str, float]) -> Json:
    """Return the time of each part: 0 of one without a time, where others have one."""
    if times and isfinite(sum(times.values())):  # as those of tens of thousands of steps
        return {part: times.get(part, 0.0) for part in PARTS}
    return {part: as_json(times.get(part, 0.0)) if times else None for part in PARTS}


# Times by keys of PARTS, in ms; {} where they are unknown.
if TYPE_CHECKING:
    Parts = Mapping[str, float]
else:
    Parts = form(Mapping, read=_times, write=_of_all, like=(_Times,))
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
    steady: bool = field(name="typical")  # counted in the breakdown; False for an outlier


class StepsSummary(Record, kw_only=True):
    """The times of the steps. A step lasts until the next one starts, so it includes ``between``."""

    source: StepSource  # how the steps were found
    missing: str = ""  # why there are none
    rows: tuple[StepRow, ...] = ()  # one per call; with steps_per_execution a call is several steps
    count: Count = 0
    median_ms: Ms | None = None
    mean_ms: Ms | None = None
    p10_ms: Ms | None = None
    p90_ms: Ms | None = None
    between_ms: Ms | None = None
    stalled: Count = 0  # long steps that wait for input again and again, which ``step_ms`` contains
    step_ms: Positive | None = None  # the median; the mean without outliers where steps are stalled
    breakdown_ms: Parts = field(default_factory=dict)  # sums to step_ms
    untraced_ms: Positive | None = None  # the step without the profiler's cost, where it is much
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


class Account(Record, kw_only=True):
    """What explains the time of a large part of the step; each such part has one account."""

    part: str  # of PARTS
    total_ms: Ms = field(name="ms")
    state: AccountState
    rules: tuple[str, ...] = ()  # whose findings name time of the part
    why: tuple[str, ...] = ()  # sentences: why time of the part is necessary work, or what delayed it
    unexplained_ms: Ms = 0.0  # what neither findings nor necessary work explain


US_PER_MS = 1000.0


class TimelineBar(NamedTuple):
    """Work, or several pieces of work too short to be told apart: its place in the step, in us to 0.1.

    What it is, and the rules whose findings are about it, are places in the lists of the timeline; earlier reports
    have no rules. Of several pieces it is the longest.
    """

    start: Start
    duration: Time
    part: Count
    name: Count
    pieces: Count
    rules: Count = -1

    @property
    def start_ms(self) -> float:
        """From the start of the step."""
        return self.start / US_PER_MS

    @property
    def duration_ms(self) -> float:
        """How long it took."""
        return self.duration / US_PER_MS


class TimelineLane(Record):
    """Bars that do not overlap, in the order of their starts."""

    name: str
    bars: tuple[TimelineBar, ...]


class Timeline(Record, kw_only=True):
    """What ran when in one typical step: the parts of the step, then its input and its devices."""

    number: Signed = field(name="step")
    total_ms: Time
    parts: tuple[str, ...]
    names: tuple[str, ...]
    rules: tuple[tuple[str, ...], ...] = ((),)
    lanes: tuple[TimelineLane, ...]
    hidden: Count  # pieces of work that ran beside more others than there are lanes

    def __post_init__(self) -> None:
        """Refuse a bar whose part, name or rules are in no list.

        Raises:
            ValueError: one has such; the text says where.
        """
        lists = ((2, "parts", len(self.parts)), (3, "names", len(self.names)), (5, "rules", len(self.rules)))
        for lane, row in enumerate(self.lanes):
            for number, bar in enumerate(row.bars):
                for at, what, count in lists:
                    if bar[at] >= count:
                        path = f"lanes[{lane}].bars[{number}][{at}]"
                        raise ValueError(f"expected the number of one of {what}, not {bar[at]} - at `$.{path}`")
