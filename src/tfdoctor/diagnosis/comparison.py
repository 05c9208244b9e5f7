"""The comparison of two runs of a program: everything `tfdoctor diff` shows, and the only input of its renderers.

Times are milliseconds per training step. Changes are relative to the time before: 0.1 is 10 % slower, negative is
faster.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Place


class Direction(StrEnum):
    """What the traced steps show of a difference."""

    FASTER = "faster"
    SLOWER = "slower"
    NONE = "none"  # no difference that these steps can show
    UNKNOWN = "unknown"  # neither shown nor ruled out


class StepFigure(StrEnum):
    """What the step of a run is of its traced steps."""

    TYPICAL = "typical"  # their median
    MEAN = "mean"  # their mean without outliers: the input stalls some of them again and again
    STRETCHES = "stretches"  # the median over stretches of the stretch's mean, which some long steps are part of


class Undecided(StrEnum):
    """Why it is unknown whether the step changed."""

    WIDE = "wide"  # the interval is too wide
    PART = "part"  # a part of the step changed, and nothing makes up for it
    CONDITIONS = "conditions"  # other programs, or another clock, may account for it
    LONG_STEPS = "long-steps"  # all steps together differ from the typical step, but not for certain


# Smallest difference that steps must show for "no difference" to say something: `tfdoctor try` has the same.
WIDEST = 0.15


class RunSide(Record, kw_only=True):
    """The run, or the several runs, on one side of the comparison."""

    title: str
    recordings: int  # how many were given
    steps: int  # traced, of all recordings
    step_ms: float | None = None  # the geometric mean of the recordings
    untraced_ms: float | None = None  # likewise outside of the traces, where step_ms is clearly longer
    mean_ms: float | None = None  # of all traced steps of the first recording, long ones included
    parts_ms: Mapping[str, float] = field(default_factory=dict)  # keys of PARTS; sums to step_ms
    tfdoctor: str = ""  # the version that wrote the report


class Mismatch(Record):
    """A respect in which the two runs are not the same program on the same machine."""

    what: str  # "CPU", "batch size", ...
    before: str
    after: str


class ChangeOfStep(Record, kw_only=True):
    """The difference of the steps, with its 95 % interval."""

    change: float
    low: float
    high: float
    least: float  # the smallest difference that such steps can show
    direction: Direction
    figure: StepFigure = StepFigure.TYPICAL  # what is compared
    doubt: Undecided | None = None  # why the direction is unknown
    before_ms: float = 0.0  # the figure of the first run of each side
    after_ms: float = 0.0


class PartChange(Record, kw_only=True):
    """A part of the step; of runs that cannot be compared in ms, shares of the step instead."""

    part: str  # of PARTS
    before: float
    after: float
    changed: bool | None  # by more than the steps of the two runs differ anyway; None where too few show it


class PhaseChange(Record, kw_only=True):
    """A phase of the run, in ms of it."""

    phase: Phase
    before_ms: float
    after_ms: float


class ChangeOfRun(Record, kw_only=True):
    """The whole runs of both sides, without tfdoctor's own work: each measured once, so without an interval."""

    before_ms: float
    after_ms: float
    phases: tuple[PhaseChange, ...]  # in the order of Phase; they sum to the runs
    epochs: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (0, 0)  # of training
    ended_early: bool = False  # one of them, after its traced steps, as asked


MoverKind = Literal["operation", "stage"]


class Mover(Record, kw_only=True):
    """An operation type of a layer, or a stage of the input pipeline, that changed; ms, or shares of the step."""

    kind: MoverKind
    name: str
    before: float | None  # None: it is not there
    after: float | None


class FindingState(StrEnum):
    """What became of a finding."""

    NEW = "new"
    WORSE = "worse"
    SAME = "same"
    BETTER = "better"
    GONE = "gone"
    UNCHECKED_BEFORE = "unchecked-before"  # it is in the run after; the rule has no verdict about the other
    UNCHECKED_AFTER = "unchecked-after"


# What the time of a finding is: the saving of its change, or what it takes, part of which a change may save.
AmountKind = Literal["saving", "cost"]


class FindingChange(Record, kw_only=True):
    """A finding of one run or of both, matched by its rule and its file."""

    state: FindingState
    rule: str
    summary: str  # of the run after, or of the run before where it is gone
    severity: str  # likewise; "" where the finding has none
    at: Place | None = None
    before_ms: float | None = None  # per step
    before_kind: AmountKind | None = None
    after_ms: float | None = None
    after_kind: AmountKind | None = None
    shown_by: str = ""  # the rule of the finding that names its cause, or asks for the same edit
    before_run_ms: float | None = None  # what its change saves of the run
    after_run_ms: float | None = None


class RegressionGate(Record, kw_only=True):
    """The largest regression that is allowed, and whether the steps show a larger one."""

    most: float
    failed: bool
    unclear: bool = False  # neither shown nor ruled out


class RunComparison(Record, kw_only=True):
    """The result of comparing two runs."""

    version: str = field(name="tfdoctor")
    before: RunSide
    after: RunSide
    step: ChangeOfStep | None  # None where the step of a run is not known, or times cannot be compared
    missing: str = ""  # why there is no change of the step, as a clause
    in_ms: bool = True  # parts and movers are in ms; otherwise shares of the step
    mismatches: tuple[Mismatch, ...] = ()
    wider: tuple[str, ...] = ()  # why the interval is wider than the steps alone make it, as sentences
    parts: tuple[PartChange, ...] = ()
    movers: tuple[Mover, ...] = ()  # those that moved most first
    findings: tuple[FindingChange, ...] = ()
    gate: RegressionGate | None = None
    long_steps: bool = False  # the means differ by more than the interval holds: few long steps, left out
    run: ChangeOfRun | None = None  # None where one of the runs is not known whole
