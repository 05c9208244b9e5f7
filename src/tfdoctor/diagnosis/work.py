"""What ran: in the run, by its phases, and in a step, by its profile, operations and stages of the input."""

# ruff: noqa: F403, F405 - types that are those of facts stand in `terms`, and are imported from here
from enum import StrEnum

from tfdoctor.terms.json_form import Amount, Count, Ms, Number, Share, Sometimes
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.run_time import *
from tfdoctor.terms.verdict import Location


class PhaseRow(Record, kw_only=True):
    """A phase of the run, in ms, and its lines, the largest first."""

    phase: Phase
    ms: Ms
    lines: tuple[PhaseLine, ...] = ()


class ImportedPackage(Record, kw_only=True):
    """A package that the run imports, in ms with all that it imports in turn, at the line that takes most of it.

    ``late`` says where the script first uses its name, as a clause, where that is after the training or nowhere.
    """

    package: str  # "sklearn"
    at: Location | None
    ms: Ms
    late: Sometimes[str] = ""


class RunAccount(Record, kw_only=True):
    """The account of the run: every ms of its wall time in exactly one phase; ``rows`` sum to ``total_ms``.

    ``whole`` is False where only a traced window is known; ``missing`` says why, as a clause.
    """

    total_ms: Ms
    rows: tuple[PhaseRow, ...] = field(name="phases")  # in the order of Phase, those that take time
    segments: tuple[PhaseSegment, ...] = ()
    whole: bool = True
    missing: str = ""
    finished: bool = True
    ended_early: Sometimes[bool] = False  # after its traced steps, as asked: --stop-after
    unseen: Sometimes[bool] = False  # training, as none was seen
    recurring_ms: Ms = 0.0  # what a longer run has more of
    steps: Count = field(default=0, name="step_count")  # of the loop that takes longest
    step_loops: Sometimes[Count] = 1
    step_mean_ms: Ms | None = None
    step_median_ms: Ms | None = None
    epochs: Count = field(default=0, name="epoch_count")
    planned_epochs: Count | None = None
    for_epochs: Count | None = None  # extrapolated to: as the user asked, or as fit was told
    for_times: Sometimes[Number | None] = None  # as much of what recurs it has
    window_share: Share | None = None  # of the steps' time, in steps like the traced ones
    window_steps: Count = 0
    peak_bytes: Number | None = None
    workers: Sometimes[WorkersTime | None] = None  # processes that did a part of the script's work
    others: tuple[str, ...] = ()  # other processes of the run
    notes: tuple[str, ...] = ()  # sentences
    imports: Sometimes[tuple[ImportedPackage, ...]] = ()  # of a short run that they take much of, the largest first
    long_steps: LongStepTime | None = None  # None: no step took much longer than the others

    def of(self, *phases: Phase) -> float:
        """Return the time of phases, in ms."""
        return sum(row.ms for row in self.rows if row.phase in phases)


class PipelineStage(Record, kw_only=True):
    """One iterator of the input pipeline; consumers come before producers."""

    name: str  # "Map", "Prefetch", ...: what ran
    parent: Count | None  # index of the consumer in the tuple of stages
    self_ms: Ms  # work of this stage alone, per step, summed over threads
    parallelism: Number  # mean number of threads at work in it while it works
    calls: Number  # per step
    critical: bool  # on the chain that limits the pipeline
    written: str = ""  # what the user wrote, when it is known: ".map(decode)"
    at: Location | None = None
    note: str = ""  # "injected by tf.data", "ran in parallel (autotuned)", ...


class OperationRow(Record, kw_only=True):
    """Compute time of one operation type in one layer."""

    layer: str  # "" when it belongs to none
    operation: str  # "Conv2D"
    self_ms: Ms  # wall time it is accountable for, per step
    share: Share  # of the step
    at: Location | None = None
    detail: str = ""  # shapes and types, for the reader
    flops: Amount | None = None  # per step; None where not all of it is known
    nbytes: Amount | None = field(default=None, name="bytes")  # of operands and results, per step; likewise


class DeviceRates(Record, kw_only=True):
    """What the device can compute and move at most; None where unknown."""

    flop_s: Amount | None = field(default=None, name="flop_per_s")  # dense matmuls in the fastest 16-bit type
    bytes_s: Amount | None = field(default=None, name="bytes_per_s")  # of its memory
    measured: bool = False  # the memory's rate is that of this run's own elementwise operations


class WorkKind(StrEnum):
    """What a row of the profile is."""

    LINE = "line"  # Python of a line, or what a thread of the host did where no line is known
    OPERATION = "operation"  # the operations of one type that one line, or one layer, made
    STAGE = "stage"  # of the input pipeline


class ProfileRow(Record, kw_only=True):
    """What takes time of the shown step (see StepsSummary), and how far it is from what the hardware can do.

    ``attained`` is the least time that the bytes and FLOPs need at the hardware's rates, relative to ``ms``, 0 to
    1; None is unknown, and ``unknown`` says why, as a clause.
    """

    kind: WorkKind
    what: str  # "Conv2D", "Map(decode)", "numpy.histogram"
    part: str  # of PARTS
    ms: Ms  # per step
    share: Share  # of the step
    at: Location | None = None
    layer: Sometimes[str] = ""
    beside: Sometimes[bool] = False  # the step does not wait for it
    attained: Number | None = None
    of_fastest: Sometimes[Number | None] = None  # its FLOP/s over the highest of this run in its type
    unknown: Sometimes[str] = ""
    within: Sometimes[bool] = False  # the framework's own work in a call of a compiled function
    inner: Sometimes[Location | None] = None  # the line, in a stage's function, of its slowest operation


class LargePlace(Record, kw_only=True):
    """A line, or a loop by its largest line, that takes much of the run and that no finding explains.

    ``ms`` is its time in the run and ``share`` that of the run, where ``of_run``; else both are of the shown step.
    ``recurring`` is the share of what recurs in a longer run, where it is the larger one. ``times`` is how often a
    step calls the same layers from there. ``form`` is what mostly does the same in less time. ``inner``,
    ``attained`` and ``of_fastest`` are as in ProfileRow.
    """

    at: Location
    what: str  # what takes most of its time: a function of a library, a type of operations; "" is its own Python
    phase: Phase
    part: Sometimes[str] = ""  # of PARTS, where it is known by the profile of the step
    ms: Ms
    share: Share = 0.0
    recurring: Sometimes[Share | None] = None
    of_run: Sometimes[bool] = False
    times: Sometimes[Count] = 0
    form: Sometimes[str] = ""
    inner: Sometimes[Location | None] = None
    attained: Number | None = None
    of_fastest: Sometimes[Number | None] = None


class PythonPart(Record, kw_only=True):
    """The host's Python in a part of the step, in ms per step: its lines and what they call, the largest first."""

    part: str  # of PARTS
    ms: Ms
    lines: tuple[PhaseLine, ...]


class Profile(Record, kw_only=True):
    """What takes most of a step, the longest first; the shorter ones are counted."""

    rows: tuple[ProfileRow, ...] = ()
    omitted: Count = 0
    omitted_ms: Ms = 0.0  # per step, all of them together; those beside the step are left out
    python: Sometimes[tuple[PythonPart, ...]] = ()  # by samples of the stack
