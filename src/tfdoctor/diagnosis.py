"""Everything a report shows, and the one thing that renderers see.

Times are milliseconds per training step unless a name says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tfdoctor.kinds import DeviceKind, StepSource, TrustLevel
from tfdoctor.rule import Rule, Topic
from tfdoctor.units import Quantity
from tfdoctor.verdict import Bound, Location, Measure, Outcome, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was examined. Unknown text is "", unknown numbers are None."""

    title: str
    command: tuple[str, ...] = ()
    device: DeviceKind | None = None
    device_name: str = ""
    devices_used: int | None = None
    devices_visible: int | None = None
    framework: Mapping[str, str] = field(default_factory=dict)  # {"tensorflow": "2.21.0", ...}
    hosts: tuple[str, ...] = ()
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One training step: its number, its time and what the time went to."""

    number: int
    total_ms: float
    parts_ms: Mapping[str, float]  # keys of PARTS; sums to total_ms
    steady: bool  # counted in the breakdown; False for an outlier


PARTS = ("input", "transfer", "host", "device", "collective", "between", "unknown")
"""The parts of a step, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSummary:
    """How long the steps took. A step lasts until the next one starts, so it holds ``between``."""

    source: StepSource  # how the steps were found
    missing: str = ""  # why there are none
    rows: tuple[StepRow, ...] = ()  # one per call; with steps_per_execution a call is several steps
    count: int = 0
    median_ms: float | None = None
    mean_ms: float | None = None
    p10_ms: float | None = None
    p90_ms: float | None = None
    between_ms: float | None = None
    breakdown_ms: Mapping[str, float] = field(default_factory=dict)  # sums to median_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """One iterator of the input pipeline, in the order of the data: the source is last."""

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
    """Where the compute time went: one type of operation of one layer."""

    layer: str  # "" when it belongs to none
    operation: str  # "Conv2D"
    self_ms: float  # wall time it is accountable for, per step
    share: float  # of the step
    at: Location | None = None
    detail: str = ""  # shapes and types, for the reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far the figures can be trusted, and why not further."""

    level: TrustLevel
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """What xprof says of the same trace."""

    conclusion: str
    agrees: bool | None  # None: it has no opinion to compare
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a change saves, computed by the step model."""

    per_step: Quantity
    share: float
    bound: Bound
    how: str
    after: tuple[str, ...] = ()  # rules to be followed first; until then it saves little or nothing


@dataclass(frozen=True, slots=True)
class Edit:
    """A remedy as an edit of the user's own lines; "" before and after where it could not be made.

    ``missing`` is a clause that says why it is not in the patch; "" when it is.
    """

    at: Location | None  # the first line that changes
    before: str = ""  # the lines as they are, without the indent they share
    after: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A rule and what came of it."""

    rule: Rule
    outcome: Outcome
    saving: Saving | None = None
    severity: Severity | None = None  # of a finding, resolved from its saving
    edits: tuple[Edit, ...] = ()  # one for each remedy of a finding; () when none was tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What all findings save when all are followed."""

    per_step: Quantity
    share: float
    rules: tuple[str, ...]
    bound: Bound = Bound.EXPECTED  # AT_MOST when one of them is
    more_than_alone: bool = False  # than one by one: what overlaps gains only together


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One of several hosts; times in ms per training step, unknown ones None."""

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
    """A fault, and on which hosts it was found; the summary and saving are of the worst of them."""

    rule: str
    title: str
    topic: Topic
    summary: str
    severity: Severity | None
    saving: Saving | None
    hosts: tuple[str, ...]
    shown: bool  # among the results of the host that the report shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Several hosts of one job, compared; the rest of a diagnosis is of the one that is ``shown``."""

    rows: tuple[HostRow, ...]
    shown: str
    why_shown: str
    slowest: str  # which host holds up the others and by what, or why nothing is said
    straggler: str = ""  # its name, when one is told
    stage: str = ""  # of PARTS: what makes it slow
    lag_ms: float | None = None  # of its own work behind the others' median
    gain_ms: float | None = None  # what the job gains at most until other hosts are faster too
    matched_by: str = ""  # how steps were told to be the same
    matched: int = 0  # steps that all compared hosts have
    skew_start_ms: float | None = None  # the slowest host minus the median host
    skew_end_ms: float | None = None
    skew: str = ""  # what is assumed of the clocks, or why it is unknown
    findings: tuple[HostFinding, ...] = ()


class Relationship(StrEnum):
    """How a finding stands to others."""

    FIRST = "first"  # the others are to be followed before it
    INSTEAD = "instead"  # it and the other exclude each other
    UNNEEDED = "unneeded"  # once the others are followed, it saves nothing more
    CEILING = "ceiling"  # it says what a whole stage costs; the others are about parts of that


@dataclass(frozen=True, slots=True)
class Relation:
    """How one finding stands to others, and why (of a ceiling: for which stage)."""

    kind: Relationship
    rule: str
    others: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A finding, and what it saves once those before it are followed."""

    rule: str
    saves: Quantity
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """In which order to follow findings that bear on each other."""

    turns: tuple[Turn, ...] = ()
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class Off:
    """A rule that was not applied, because the user wants it so."""

    rule: str
    title: str
    why: str  # "ignored by pyproject.toml"


@dataclass(frozen=True, slots=True)
class LimitSet:
    """A rule's limit that has another value than its own."""

    rule: str
    name: str
    value: float
    default: float
    by: str  # "pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose and set of the rules; empty when they are as they come."""

    off: tuple[Off, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    own: tuple[str, ...] = ()  # names of the user's own rules that were applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The whole examination of one recording."""

    version: str  # of tfdoctor
    subject: Subject
    steps: StepsSummary
    trust: Trust
    results: tuple[Result, ...]  # the gravest finding first; then healthy, not-applicable, errored
    together: Together | None = None
    xprof: SecondOpinion | None = None
    pipeline: tuple[PipelineStage, ...] = ()
    pipeline_missing: str = ""
    operations: tuple[OperationRow, ...] = ()  # heaviest first
    operations_missing: str = ""
    model: tuple[Measure, ...] = ()  # every number the step model uses
    machine: tuple[tuple[str, str], ...] = ()  # ("cores the run may use", "2"), ...
    samples: tuple[Measure, ...] = ()  # means over the traced window
    device_time: tuple[Measure, ...] = ()  # what the GPUs do in a step, and while they do nothing
    device_time_missing: str = ""  # why that is not known
    unrecorded: tuple[str, ...] = ()  # what could not be recorded, and why
    hosts: Hosts | None = None  # when the job had several
    settings: Settings = field(default_factory=Settings)
    order: Order | None = None  # of findings that bear on each other
    patch: bytes = b""  # the edits that go together, as a unified diff; for `--patch` only
