"""How busy the GPUs were, and what the host did while no stream of one worked.

Each instant of idle time has one cause, the first of ``IdleCause`` that applies; so the causes sum to the idle
time, and together with the time in which the GPU works to the step.
"""

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.steps.steps import RoundUnit, SteadySteps
from tfdoctor.facts.timeline.activity import Activity, captured_executions
from tfdoctor.facts.timeline.host_events import is_named, matching, spans_of, trainers, waits_before
from tfdoctor.trace.names import EXECUTOR, FUNCTION_RUNS, INPUT_THREAD, LAUNCH, PYTHON_CALL, SYNC, TRAINING_CALLS

NEVER = np.iinfo(np.int64).max  # The launch time of work whose launching call is not in the trace


def launches(trace: Trace, plane: Plane) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n,) when a GPU's work started, in order, and (n,) when the host's call that launched it ended.

    Call and work have the same correlation id.
    """
    ended: dict[int, int] = {}
    for line in trace.host_lines:
        events, ids = line.stats.ids("correlation_id")
        ends = line.start_ps[events] + line.duration_ps[events]
        ended |= dict(zip(ids.tolist(), ends.tolist(), strict=True))
    rows: list[tuple[int, int]] = []
    for line in work_lines(plane):
        calls = line.stats.ids_of("correlation_id", np.arange(len(line))).tolist()
        rows += zip(line.start_ps.tolist(), (ended.get(call, NEVER) for call in calls), strict=True)
    starts, launched = pairs_of(sorted(rows)).T
    return starts, launched


class HostWork(Record, eq=False):
    """When the threads that serve the training do each kind of work; the four may overlap.

    Only the trainer's threads count: another Python thread that fetches batches does not delay the training,
    and `IteratorGetNext/_3:_Send` is the copy of a batch, not a wait for it.
    """

    waits: Intervals  # for the next batch
    launches: Intervals  # executors run, or the driver is called
    syncs: Intervals  # a call of the driver, or Python, blocks until the device is done
    python: Intervals | None  # Python runs, without TensorFlow inside it; None is unknown

    @classmethod
    def measure(cls, trace: Trace, activity: Activity) -> Self:
        """Sort the host's events thread by thread."""
        lines = [line for line in trace.host_lines if len(line)]
        captured = np.array(sorted(captured_executions(trace)), np.uint64)
        launches, syncs = Intervals(), Intervals()
        for line in lines:
            blocked = matching(line, SYNC)
            syncs |= blocked
            if line.name.startswith(INPUT_THREAD):
                continue
            launching = is_named(line, LAUNCH.fullmatch)
            launching[line.stats.having("correlation_id")] = True
            executes = np.flatnonzero(is_named(line, EXECUTOR.__eq__))
            of_input = np.isin(line.stats.ids_of("id", executes), captured)
            launching[executes[~of_input]] = True
            launches |= spans_of(line, launching) - blocked
        alone = None  # when the trainer's threads are in Python's frames and in no other event
        for line in trainers(lines):
            outer = np.zeros(len(line), bool)
            for stat in ("_r", "step_num", "tf_function_call"):  # around a step or a tf.function
                outer[line.stats.having(stat)] = True
            outer &= ~is_named(line, FUNCTION_RUNS.__contains__)
            outer |= is_named(line, TRAINING_CALLS.__contains__)
            outer |= is_named(line, PYTHON_CALL.fullmatch)
            alone = (alone or Intervals()) | (spans_of(line, outer) - spans_of(line, ~outer))
        return cls(activity.wait, launches | activity.dispatch - syncs, syncs, alone)


class GpuShare(Record):
    """One GPU's round: milliseconds, each a union over its streams, and numbers of kernels."""

    name: str
    kernel_ms: float  # without collectives and copies
    copy_ms: float
    collective_ms: float
    busy_ms: float  # any of the three
    kernels: float
    traced_ms: float  # its kernels in the whole trace, steps or not


class GpuUtilization(Record):
    """All GPUs of the host, the busiest first, and how long the trainer waits for batches; None is unknown."""

    unit: RoundUnit  # of a round: a training step, or the trace where it has no steps
    round_ms: float
    gpus: tuple[GpuShare, ...]
    wait_ms: float | None  # hidden or not
    exposed_wait_ms: float | None  # while the busiest GPU idles between its first and its last work
    wait_before_ms: float = 0.0  # before the GPU's first work, where its step begins

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork, framework: Framework
    ) -> Self:
        """Sum up every GPU's work."""
        before = 0.0  # the first step's batch, before that step begins
        if steady.unit is RoundUnit.STEP:
            before = steady.scaled(waits_before(trace.host_lines, steady.stretches.spans[0]).total)
        gpus = []
        for gpu in activities.gpus:
            kinds, traced_ms = (gpu.kernels, gpu.copies, gpu.collectives, gpu.busy), gpu.kernels.total / PS_PER_MS
            kernel_ms, copy_ms, exchange_ms, busy_ms = map(steady.ms, kinds)
            kernels = int(steady.holds(gpu.kernel_starts_ps).sum()) / steady.rounds
            gpus.append(GpuShare(gpu.name, kernel_ms, copy_ms, exchange_ms, busy_ms, kernels, traced_ms))
        wait, exposed = steady.ms(host.waits) + before, steady.ms(host.waits - activities.busiest.busy)
        if framework.no_pipeline and not host.waits:
            return cls(steady.unit, steady.round_ms, tuple(gpus), None, None, before)
        return cls(steady.unit, steady.round_ms, tuple(gpus), wait, exposed, before)

    @property
    def busiest(self) -> GpuShare:
        """The GPU whose steps are examined."""
        return self.gpus[0]


class IdleCause(StrEnum):
    """What the host did while the GPU was idle, by priority."""

    INPUT = "waiting for input"
    BETWEEN = "between steps"
    # Before the gap began, so that no host could shorten it: the GPU itself takes a microsecond or more from one
    # kernel to the next.
    QUEUED = "work already launched"
    DISPATCH = "launching work"
    SYNC = "synchronizing with the GPU"
    PYTHON = "running Python"
    UNKNOWN = "unknown cause"


class GapSize(StrEnum):
    """The length of a whole gap: the shortest are the cost of a launch; the longest are no launches."""

    TINY = "below 10 µs"
    SMALL = "10 to 100 µs"
    MEDIUM = "0.1 to 1 ms"
    LARGE = "above 1 ms"


_EDGES_PS = (10_000_000, 100_000_000, 1_000_000_000)


class IdleGaps(Record):
    """The busiest GPU's idle time. Milliseconds and counts per training step, or of the whole trace."""

    idle_ms: float
    causes: Mapping[IdleCause, float]  # ms by cause, sums to idle_ms
    sizes: Mapping[GapSize, float]  # ms by size of the gap, sums to idle_ms
    gaps: Mapping[GapSize, float]  # number of gaps by size
    dispatching: Mapping[GapSize, float]  # ms by size, sums to causes[IdleCause.DISPATCH]
    kernels: float  # per step

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork) -> Self:
        """Divide the idle time of every steady step."""
        gpu = activities.busiest
        gaps = pairs_of((steady.stretches - gpu.busy).spans)
        starts, launched = launches(trace, gpu.plane)
        after = starts.searchsorted(gaps[:, 1])
        queued = np.append(starts, NEVER)[after] == gaps[:, 1]  # it ends with work
        queued &= np.append(launched, NEVER)[after] <= gaps[:, 0]  # that was launched before it began
        idle = Intervals.merged(*gaps.T)
        claims = {
            IdleCause.INPUT: host.waits,
            IdleCause.BETWEEN: idle - steady.calls,
            IdleCause.QUEUED: Intervals.merged(*gaps[queued].T),
            IdleCause.DISPATCH: host.launches,
            IdleCause.SYNC: host.syncs,
            IdleCause.PYTHON: host.python or Intervals(),  # where it is not known, its time is of an unknown cause
        }
        parts = exclusive({**{cause: idle & claimed for cause, claimed in claims.items()}, IdleCause.UNKNOWN: idle})
        dispatch = parts[IdleCause.DISPATCH]
        size = np.searchsorted(_EDGES_PS, gaps[:, 1] - gaps[:, 0], side="right")
        by_size = {name: gaps[size == place] for place, name in enumerate(GapSize)}
        times = {name: Intervals.merged(*sized.T) for name, sized in by_size.items()}
        return cls(
            idle_ms=steady.scaled(sum(time.total for time in times.values())),
            causes={cause: steady.scaled(part.total) for cause, part in parts.items()},
            sizes={name: steady.scaled(time.total) for name, time in times.items()},
            gaps={name: len(sized) / steady.rounds for name, sized in by_size.items()},
            dispatching={one: steady.scaled((time & dispatch).total) for one, time in times.items()},
            kernels=int(steady.holds(gpu.kernel_starts_ps).sum()) / steady.rounds,
        )

    @property
    def launching_ms(self) -> float:
        """The idle time in gaps below a millisecond while the host launches work, in ms."""
        return sum(ms for size, ms in self.dispatching.items() if size is not GapSize.LARGE)
