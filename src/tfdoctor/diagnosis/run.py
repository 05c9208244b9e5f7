"""The account of the run."""

from tfdoctor.terms.json_form import Count, Ms, Number, Share, Sometimes
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Location


class PhaseLine(Record, kw_only=True):
    """A line of the user's with time of a phase, in ms; ``calls`` is what it calls of a library."""

    at: Location | None
    ms: Ms
    calls: str = ""
    samples: Count = 0


class PhaseRow(Record, kw_only=True):
    """A phase of the run, in ms, and its lines, the largest first."""

    phase: Phase
    ms: Ms
    lines: tuple[PhaseLine, ...] = ()


class PhaseSegment(Record, kw_only=True):
    """A stretch of the run in time order, in ms since the process began."""

    phase: Phase
    start_ms: Ms
    end_ms: Ms
    at: Location | None = None


class LongStepTime(Record, kw_only=True):
    """The run's steps of more than 1.5 times the usual one, traced or not, and what was seen in them; times in ms.

    ``beyond_ms`` is what they take beyond usual ones. ``lines`` are what the stack showed after the usual time,
    ``unknown_ms`` is what they do not explain of ``beyond_ms``: its cause is unknown.
    """

    count: Count
    ms: Ms
    beyond_ms: Ms
    lines: tuple[PhaseLine, ...] = ()
    unknown_ms: Ms = 0.0
    first: Count = field(default=0, name="first_count")  # of these, first steps of an epoch or a pass
    first_beyond_ms: Ms = 0.0
    every: Count | None = None  # their period in steps, where they have one
    other_cores: Number = 0.0  # that other programs used while none was free: they delay steps


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
    others: tuple[str, ...] = ()  # other processes of the run
    notes: tuple[str, ...] = ()  # sentences
    long_steps: LongStepTime | None = None  # None: no step took much longer than the others

    def of(self, *phases: Phase) -> float:
        """Return the time of phases, in ms."""
        return sum(row.ms for row in self.rows if row.phase in phases)
