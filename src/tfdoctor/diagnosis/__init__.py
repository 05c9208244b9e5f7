"""The diagnosis: everything a report shows, and the only input of renderers.

Times are milliseconds per training step unless a name says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.terms.json_form import (
    AllOf,
    AsText,
    MaybePositive,
    MaybeSameUnit,
    Milliseconds,
    Named,
    OmitDefault,
    OneUnit,
    OrBlank,
    Pairs,
    Positive,
    SameUnit,
)
from tfdoctor.terms.kinds import DeviceKind, Phase, StepSource, TrustLevel
from tfdoctor.terms.units import Quantity
from tfdoctor.terms.verdict import (
    Bound,
    Finding,
    Location,
    Measure,
    Outcome,
    Place,
    Recurrence,
    Severity,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The run that was examined. Unknown text is "", unknown numbers are None."""

    title: str
    command: tuple[str, ...] = ()
    device: Annotated[DeviceKind | None, OrBlank(DeviceKind)] = None
    device_name: str = ""
    devices_used: int | None = None
    devices_visible: int | None = None
    framework: Mapping[str, str] = field(default_factory=dict)  # {"tensorflow": "2.21.0", ...}
    hosts: tuple[str, ...] = ()
    exit_code: int | None = None


PARTS = ("input", "transfer", "host", "device", "collective", "between", "unknown")
"""The parts of a step, in display order."""

Parts = Annotated[Mapping[str, float], AllOf(PARTS)]
"""Times by keys of PARTS, in ms; {} where they are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One training step: its number, its time and the parts of its time."""

    number: int
    total_ms: Positive
    parts_ms: Parts  # sum to total_ms
    steady: Annotated[bool, Named("typical")]  # counted in the breakdown; False for an outlier


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStepsSummary:
    """Slow steps that take most of the time of all timed steps, traced or not; times in ms."""

    number: Annotated[int, Named("count")]
    ms: float
    timed: Annotated[int, Named("timed_count")]
    timed_ms: float
    at_least: Annotated[bool, OmitDefault()] = (
        False  # more may be slow: only the longest untraced ones are known
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSummary:
    """The times of the steps. A step lasts until the next one starts, so it includes ``between``."""

    source: StepSource  # how the steps were found
    missing: str = ""  # why there are none
    rows: tuple[StepRow, ...] = ()  # one per call; with steps_per_execution a call is several steps
    count: int = 0
    median_ms: float | None = None
    mean_ms: float | None = None
    p10_ms: float | None = None
    p90_ms: float | None = None
    between_ms: float | None = None
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


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """Work, or several pieces of work too short to be told apart; times in ms from the start of the step."""

    start_ms: float
    duration_ms: float
    part: str  # of PARTS
    name: str  # what ran; of several pieces the longest
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """Bars that do not overlap, in the order of their starts."""

    name: str
    bars: tuple[TimelineBar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What ran when in one typical step: the parts of the step, then its input and its devices."""

    number: int  # of the step
    total_ms: float
    lanes: tuple[TimelineLane, ...]
    hidden: int = 0  # pieces of work that ran beside more others than there are lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """One iterator of the input pipeline; consumers come before producers."""

    name: str  # "Map", "Prefetch", ...: what ran
    parent: int | None  # index of the consumer in the tuple of stages
    self_ms: float  # work of this stage alone, per step, summed over threads
    parallelism: float  # mean number of threads at work in it while it works
    calls: float  # per step
    critical: bool  # on the chain that limits the pipeline
    written: str = ""  # what the user wrote, when it is known: ".map(decode)"
    at: Location | None = None
    note: str = ""  # "injected by tf.data", "ran in parallel (autotuned)", ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """Compute time of one operation type in one layer."""

    layer: str  # "" when it belongs to none
    operation: str  # "Conv2D"
    self_ms: float  # wall time it is accountable for, per step
    share: float  # of the step
    at: Location | None = None
    detail: str = ""  # shapes and types, for the reader
    flops: float | None = None  # per step; None where not all of it is known
    nbytes: Annotated[float | None, Named("bytes")] = (
        None  # of operands and results, per step; likewise
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """What the device can compute and move at most; None where unknown."""

    flop_s: Annotated[float | None, Named("flop_per_s")] = (
        None  # dense matmuls in the fastest 16-bit type
    )
    bytes_s: Annotated[float | None, Named("bytes_per_s")] = None  # of its memory
    measured: bool = False  # the memory's rate is that of this run's own elementwise operations


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a run used and under which conditions: what two runs must share to be compared. None is unknown."""

    cpu_model: str = ""
    cores_usable: float | None = None  # by the run, in logical CPUs
    cores_run: float | None = None  # used by the run, mean over the traced steps
    cores_other: float | None = None  # used by other programs
    gpu_mhz: float | None = None  # mean clock of the multiprocessors of busy GPUs
    batch_size: int | None = None  # examples per step of all replicas, as recorded
    host_bytes: float | None = None  # the highest resident memory of the run
    device_bytes: float | None = (
        None  # the most in use on one accelerator, by TensorFlow's allocator
    )
    untraced_ms: float | None = None  # median step outside of the traced window
    matrix_unit: float | None = None  # achieved share of the peak rate while the device is busy
    missing: Annotated[Mapping[str, str], OmitDefault()] = field(
        default_factory=dict
    )  # why a field is None, as a clause; "input": why a wait for input does not show


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far the figures can be trusted, with reasons."""

    level: TrustLevel
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """The verdict of xprof on the same trace."""

    conclusion: str
    agrees: bool | None  # None: it has no opinion to compare
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The saving of a change, computed by the step model."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
    share: float
    bound: Bound
    how: str
    after: tuple[str, ...] = ()  # rules to fix first; before that it saves little or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSaving:
    """What a change saves of the run, computed by the run model.

    ``share`` is of the whole run as recorded; ``rated`` of what recurs in a longer run, or, of time that comes
    once, of the run of as many epochs as are known: the severity follows it. ``each`` is the saving each time it
    ``recurs``.
    """

    total: Annotated[Milliseconds, Named("ms")]
    share: float
    rated: Annotated[float, Named("rated_share")]
    recurs: Recurrence
    each: Annotated[Milliseconds, Named("each_ms")]
    times: int
    bound: Bound
    how: str = ""
    extrapolated: Annotated[float | None, Named("extrapolated_share")] = (
        None  # share of a run of as many epochs as asked for
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLine:
    """A line of the user's with time of a phase, in ms; ``calls`` is what it calls of a library."""

    at: Location | None
    ms: float
    calls: str = ""
    samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """A phase of the run, in ms, and its lines, the largest first."""

    phase: Phase
    ms: float
    lines: tuple[PhaseLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSegment:
    """A stretch of the run in time order, in ms since the process began."""

    phase: Phase
    start_ms: float
    end_ms: float
    at: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongStepTime:
    """The run's steps of more than 1.5 times the usual one, traced or not, and what was seen in them; times in ms.

    ``beyond_ms`` is what they take beyond usual ones. ``lines`` are what the stack showed after the usual time,
    ``unknown_ms`` is what they do not explain of ``beyond_ms``: its cause is unknown.
    """

    count: int
    ms: float
    beyond_ms: float
    lines: tuple[PhaseLine, ...] = ()
    unknown_ms: float = 0.0
    first: Annotated[int, Named("first_count")] = (
        0  # of these, first steps of an epoch or of a pass over the data
    )
    first_beyond_ms: float = 0.0
    every: int | None = None  # their period in steps, where they have one
    other_cores: float = 0.0  # that other programs used while none was free: they delay steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """The account of the run: every ms of its wall time in exactly one phase; ``rows`` sum to ``total_ms``.

    ``whole`` is False where only a traced window is known; ``missing`` says why, as a clause.
    """

    total_ms: float
    rows: Annotated[
        tuple[PhaseRow, ...], Named("phases")
    ]  # in the order of Phase, those that take time
    segments: tuple[PhaseSegment, ...] = ()
    whole: bool = True
    missing: str = ""
    finished: bool = True
    recurring_ms: float = 0.0  # what a longer run has more of
    steps: Annotated[int, Named("step_count")] = 0  # of the loop that takes longest
    step_loops: Annotated[int, OmitDefault()] = 1
    step_mean_ms: float | None = None
    step_median_ms: float | None = None
    epochs: Annotated[int, Named("epoch_count")] = 0
    planned_epochs: int | None = None
    for_epochs: int | None = None  # extrapolated to: as the user asked, or as fit was told
    window_share: float | None = None  # of the steps' time, in steps like the traced ones
    window_steps: int = 0
    peak_bytes: float | None = None
    others: tuple[str, ...] = ()  # other processes of the run
    notes: tuple[str, ...] = ()  # sentences
    long_steps: LongStepTime | None = None  # None: no step took much longer than the others

    def of(self, *phases: Phase) -> float:
        """Return the time of phases, in ms."""
        return sum(row.ms for row in self.rows if row.phase in phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTogether:
    """What all changes save of the run together."""

    total: Annotated[Milliseconds, Named("ms")]
    share: float
    rules: tuple[str, ...]
    bound: Bound
    after_ms: Annotated[Mapping[str, float], Named("phases_after_ms")] = field(
        default_factory=dict
    )  # phase: ms with them
    extrapolated: Annotated[float | None, Named("extrapolated_share")] = (
        None  # share of a run of as many epochs as asked for
    )


@dataclass(frozen=True, slots=True)
class Takes:
    """The time that a general finding names; what a change saves of it is unknown."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
    share: float


@dataclass(frozen=True, slots=True)
class Replacement:
    """New text in place of what lies between two places of a file; lines and columns from 1, in characters."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A remedy as an edit of the user's own lines; "" before and after where it could not be made.

    ``missing`` is a clause that says why it is not in the patch; "" when it is.
    """

    at: Location | None  # the first line that changes
    before: str = ""  # the lines as they are, without the indent they share
    after: str = ""
    missing: Annotated[str, OmitDefault()] = ""
    replacements: Annotated[tuple[Replacement, ...], OmitDefault()] = ()  # the same, exactly


class Difference(StrEnum):
    """What a trial shows of a variant."""

    SAVES = "saves"
    COSTS = "costs"
    NONE = "none"  # no difference that the trial could show
    UNKNOWN = "unknown"  # the machine was too noisy to tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a variant saves of the step, measured by running it: shares of the step, positive where it is faster.

    ``low`` to ``high`` is the 95 % interval.
    """

    share: float
    low: float
    high: float
    difference: Difference
    rounds: tuple[float, ...] = ()  # the share in each round
    why: str = ""  # why it is not the saving of the typical step, as a clause
    dropped: bool = (
        False  # it got no more rounds, because all cost much more than the step as it is
    )
    of_run: Annotated[bool, OmitDefault()] = (
        False  # the shares are those of the whole run instead of the step
    )


class TrainingState(StrEnum):
    """How the training of a variant compares with that of the program as it is."""

    EQUAL = "equal"  # the same weights, bit by bit
    DIFFERENT = "different"  # other weights, where the change should not affect them
    REORDERED = "reordered"  # other weights, by another order of random numbers
    LOSSES = "losses"  # compared by the losses of the first steps
    NOT_FINITE = "not-finite"  # infinite weights, or NaN
    CHANGED = "changed"  # not compared: the change is one of the model or of the batch
    UNKNOWN = "unknown"


BROKEN = (TrainingState.DIFFERENT, TrainingState.NOT_FINITE)
"""Results after which a variant is never called a saving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMatch:
    """Whether a variant still trains the same, seen by a certain step."""

    state: TrainingState
    step: int = 0
    losses: tuple[tuple[int, float, float], ...] = ()  # step, its loss as it is, and the variant's
    apart: float | None = None  # largest relative difference of a step's loss
    usual: float | None = None  # the same between two runs of the program as it is
    own: float | None = None  # of REORDERED: the same between two runs of the variant
    why: str = ""  # of UNKNOWN; of CHANGED how


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a change that helps alone saves beside others that help, or in place of those that exclude it."""

    others: tuple[str, ...]  # names of variants
    instead: bool  # it excludes them: the faster one was kept
    measured: Measured  # share of the step with the others alone that the change saves


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One variant of the program, and what running it showed."""

    name: str
    parts: tuple[str, ...] = ()  # the names of the variants that it makes at once
    action: str = ""  # what it changes; "" where the name says it
    rules: tuple[str, ...] = ()  # whose findings it fixes
    promised: Saving | None = None
    measured: Measured | None = None
    examples: float = (
        1.0  # of a step, for each one of the program as it is; the saving is per example
    )
    step_ms: float | None = None
    whole_ms: float | None = None  # with what happens between epochs
    training: TrainingMatch | None = None
    runs: int = 0
    missing: str = ""  # why it has no figure
    kept: bool = False  # among the changes that proved to help together
    beside: Beside | None = None  # of a change that was tried together with others
    promised_run: Annotated[RunSaving | None, OmitDefault()] = (
        None  # of a change that was tried by whole runs
    )
    run_ms: Annotated[float | None, OmitDefault()] = None  # wall time of the whole run with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What `tfdoctor try` measured: the program with changes against the program as it is."""

    rows: Annotated[tuple[Trial, ...], Named("variants")]
    as_is_ms: float | None = None  # median step of the program as it is
    as_is_whole_ms: float | None = None  # with what happens between its epochs
    as_is: Annotated[Measured | None, Named("as_is_against_itself")] = (
        None  # the program as it is against itself
    )
    rounds: int = 0
    runs: int = 0
    minutes: float = 0.0
    foreign: Annotated[float, Named("other_programs_share")] = (
        0.0  # share of the cores that other programs used
    )
    layer: Annotated[bool, Named("writes_thrown_away")] = (
        True  # what the runs wrote was thrown away
    )
    ended_early: Annotated[bool, Named("interrupted")] = False  # by Ctrl-C
    not_tried: Annotated[
        tuple[tuple[str, str], ...], Pairs("name", "why")
    ] = ()  # changes, and why they were not tried
    together: str = ""  # the name of the row of all changes that help together
    needed_minutes: float | None = None  # for a figure, where the time was too short for any round
    as_is_run_ms: Annotated[float | None, OmitDefault()] = (
        None  # wall time of the whole run as it is, where whole runs were compared
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A rule and its outcome."""

    rule: Rule
    outcome: Outcome
    saving: Saving | None = None
    takes: Takes | None = None  # of a general finding, in place of a saving
    measured: Measured | None = None  # what its edit saved when it was tried
    run: RunSaving | None = None  # the same of the run, where the run is known
    severity: Severity | None = None  # of a finding, resolved from its saving or its time
    edits: tuple[Edit, ...] = ()  # one for each remedy of a finding; () when none was tried
    known: bool | None = (
        None  # whether a finding about the run is in the baseline; None without one
    )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The saving of all changes combined."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
    share: float
    rules: tuple[str, ...]
    after_ms: Parts = field(default_factory=dict)  # the parts of the step with them
    bound: Bound = Bound.EXPECTED  # AT_MOST when one of them is
    more_than_alone: Annotated[bool, OmitDefault()] = False  # than the sum of the single savings


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One of several hosts; times in ms per training step, None where unknown."""

    name: str
    device: str = ""  # "Tesla V100-SXM2-16GB"
    steps: int = 0
    median_ms: float | None = None
    p10_ms: float | None = None
    p90_ms: float | None = None
    own_ms: float | None = None  # median of what it does itself: all but collectives
    breakdown_ms: Mapping[str, float] = field(default_factory=dict)
    starts_late_ms: float | None = None  # after the median host
    missing: str = ""  # why it is not compared; "" when it is


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """A finding and its hosts; the summary and the saving are those of the most affected host."""

    rule: str
    topic: Topic
    summary: str
    severity: Severity | None
    saving: Saving | None
    hosts: tuple[str, ...]
    shown: bool  # among the results of the host that the report shows
    title: str = ""
    at: Annotated[Location | None, OmitDefault()] = None  # on the most affected host
    known: bool | None = None  # whether it is in the baseline; None without one


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Comparison of the hosts of a job; the rest of the diagnosis describes the host in ``shown``."""

    rows: tuple[HostRow, ...]
    shown: str
    why_shown: str
    slowest: str  # which host the others wait for, or why none is named
    straggler: str = ""  # its name, if there is one
    stage: str = ""  # of PARTS: what makes it slow
    lag_ms: float | None = None  # of its own work behind the others' median
    gain_ms: float | None = None  # what the job gains at most until other hosts are faster too
    matched_by: str = ""  # how steps were matched
    matched: int = 0  # steps that all compared hosts have
    skew_start_ms: float | None = None  # the slowest host minus the median host
    skew_end_ms: float | None = None
    skew: str = ""  # what is assumed of the clocks, or why it is unknown
    findings: tuple[HostFinding, ...] = ()


class Relationship(StrEnum):
    """How a finding relates to others."""

    FIRST = "first"  # fix the others before it
    INSTEAD = "instead"  # fix it or the others
    UNNEEDED = "unneeded"  # saves nothing more after the others
    CEILING = "ceiling"  # bounds the cost of a whole stage; the others are about parts of it


@dataclass(frozen=True, slots=True)
class Relation:
    """How a finding relates to others, and why (for ``CEILING``: the stage)."""

    kind: Relationship
    rule: str
    others: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A finding and its saving after the fixes before it."""

    rule: str
    saves: Annotated[Milliseconds, Named("ms_per_step")]
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order in which to fix findings that affect each other."""

    turns: tuple[Turn, ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class Off:
    """A rule that the user switched off."""

    rule: str
    title: str
    why: str  # "ignored by pyproject.toml"


@dataclass(frozen=True, slots=True)
class LimitSet:
    """A limit of a rule that the user changed."""

    rule: str
    name: str
    value: float
    default: float
    by: str  # "pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's settings for the rules; empty without any."""

    off: tuple[Off, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    own: tuple[str, ...] = ()  # names of the user's own rules that were applied


class AccountState(StrEnum):
    """Whether the time of a part of the step is explained."""

    NAMED = "named"  # findings name it
    NECESSARY = "necessary"  # it is necessary work, with what findings name of it
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in a part of the step: a line of the user's, an operation, a stage or a thread."""

    what: str
    amount: Annotated[
        Quantity, OneUnit(), Named("value")
    ]  # ms per step, or the share of the stack samples
    at: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What explains the time of a large part of the step; each such part has one account."""

    part: str  # of PARTS
    total_ms: Annotated[float, Named("ms")]
    state: AccountState
    rules: tuple[str, ...] = ()  # whose findings name time of the part
    why: tuple[
        str, ...
    ] = ()  # sentences: why time of the part is necessary work, or what delayed it
    unexplained_ms: float = 0.0  # what neither findings nor necessary work explain
    seen: tuple[Seen, ...] = ()  # in an unexplained part


class BudgetState(StrEnum):
    """What a run shows of a budget."""

    MET = "met"
    EXCEEDED = "exceeded"  # the whole interval is beyond the limit
    UNCLEAR = "unclear"  # undecided: the interval holds the limit
    UNKNOWN = "unknown"  # not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCheck:
    """A budget of the user, and what the run shows of it. ``low`` to ``high`` is the 95 % interval of the value."""

    key: str  # in the settings: "step-ms"
    limit: SameUnit
    at_least: bool  # the limit is the smallest value that meets the budget, not the largest
    state: BudgetState
    value: MaybeSameUnit = None
    low: MaybeSameUnit = None  # None where there is one figure, without an interval
    high: MaybeSameUnit = None
    why: str = ""  # why it is unknown, as a clause
    at: Location | None = None  # the key in the settings, by its path in the repository

    @property
    def failed(self) -> bool:
        """Whether the command fails: also for what was not measured, because a gate must not pass unseen."""
        return self.state in (BudgetState.EXCEEDED, BudgetState.UNKNOWN)


@dataclass(frozen=True, slots=True, order=True)
class KnownFinding:
    """A finding as a baseline has it: by rule and file, because lines and sentences change with the program."""

    rule: str
    file: str  # its path in the repository, "" for a finding without a place


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineUse:
    """The baseline that the findings were compared with."""

    file: str
    gone: tuple[KnownFinding, ...] = ()  # in the baseline, and found no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of examining one recording."""

    version: Annotated[str, Named("tfdoctor")]  # of tfdoctor
    subject: Subject
    steps: StepsSummary
    trust: Trust
    results: tuple[
        Result, ...
    ]  # the most severe finding first; then healthy, not-applicable, errored
    together: Together | None = None
    run: RunAccount | None = None  # None: nothing is known of the run around the steps
    run_together: RunTogether | None = None
    xprof: SecondOpinion | None = None
    timeline: Timeline | None = None  # of a typical step
    pipeline: tuple[PipelineStage, ...] = ()
    pipeline_missing: str = ""
    operations: tuple[OperationRow, ...] = ()  # heaviest first
    operations_missing: str = ""
    rates: DeviceRates | None = None
    conditions: Conditions = field(default_factory=Conditions)
    model: tuple[Measure, ...] = ()  # every number the step model uses
    machine: Annotated[
        tuple[tuple[str, str], ...], Pairs("label", "value")
    ] = ()  # ("cores the run may use", "2"), ...
    samples: tuple[Measure, ...] = ()  # means over the traced window
    device_time: tuple[Measure, ...] = ()  # parts of the accelerators' time in a step
    device_time_missing: str = ""  # why that is not known
    unrecorded: tuple[str, ...] = ()  # what could not be recorded, and why
    hosts: Annotated[Hosts | None, OmitDefault()] = None  # when the job had several
    settings: Annotated[Settings, OmitDefault()] = field(default_factory=Settings)
    order: Annotated[Order | None, OmitDefault()] = None  # of findings that bear on each other
    accounts: tuple[Account, ...] = ()  # of the parts that take at least a tenth of the step
    trials: Annotated[Trials | None, OmitDefault()] = None  # what `tfdoctor try` measured
    budgets: Annotated[tuple[BudgetCheck, ...], OmitDefault()] = ()  # in the order of the settings
    baseline: Annotated[BaselineUse | None, OmitDefault()] = None  # None without one
    repository: Annotated[Mapping[str, str], OmitDefault()] = field(
        default_factory=dict
    )  # the path in the repository of each file that findings name, as far as it is in one
    link: Annotated[str, OmitDefault()] = ""  # where the whole report can be read
    patch: Annotated[bytes, AsText(), OmitDefault()] = (
        b""  # the edits that go together, as a unified diff
    )
