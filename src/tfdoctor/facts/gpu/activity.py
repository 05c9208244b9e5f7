"""What each GPU did."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steady_steps import RoundUnit, SteadySteps
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_operations import captured_executions
from tfdoctor.facts.timeline.trainer import is_named, matching, spans_of, trainers, waits_before
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Intervals, Plane, Trace
from tfdoctor.trace.intervals import pairs_of
from tfdoctor.trace.names import (
    COLLECTIVE,
    COPY,
    EXECUTOR,
    FUNCTION_RUNS,
    INPUT_THREAD,
    LAUNCH,
    PYTHON_CALL,
    SYNC,
    TRAINING_CALLS,
)

NEVER = np.iinfo(np.int64).max  # The launch time of work whose launching call is not in the trace


@dataclass(frozen=True, slots=True, eq=False)
class GpuActivity:
    """One GPU; kernels, copies and collectives may overlap each other, on streams of their own."""

    name: str  # "/device:GPU:0"
    kernels: Intervals
    copies: Intervals
    collectives: Intervals
    kernel_starts_ps: NDArray[np.int64]  # (n,) without collectives
    plane: Plane

    @property
    def busy(self) -> Intervals:
        """When any of its streams worked."""
        return self.kernels | self.copies | self.collectives

    @classmethod
    def of(cls, plane: Plane) -> Self:
        """Sort one GPU's events into kernels, copies and collectives."""
        kinds: tuple[list[Intervals], ...] = ([], [], [])
        starts = [np.zeros(0, np.int64)]
        for line in work_lines(plane):
            copy = is_named(line, COPY.match)
            collective = is_named(line, COLLECTIVE.match) & ~copy
            kernel = ~(copy | collective)
            for spans, mask in zip(kinds, (kernel, copy, collective), strict=True):
                spans.append(spans_of(line, mask))
            starts.append(line.start_ps[kernel])
        kernels, copies, collectives = map(Intervals.any_of, kinds)
        return cls(plane.name, kernels, copies, collectives, np.concatenate(starts), plane)


@dataclass(frozen=True, slots=True, eq=False)
class GpuActivities:
    """All visible GPUs, the busiest first."""

    gpus: tuple[GpuActivity, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Sort the events of every GPU's streams."""
        if device.kind == DeviceKind.GPU and device.missing:
            raise Unavailable(str(device.missing))
        if device.kind != DeviceKind.GPU:
            raise Unavailable("the run used no GPU, so it has no kernels, copies or launch gaps")
        gpus = map(GpuActivity.of, trace.devices(DeviceKind.GPU))
        return cls(tuple(sorted(gpus, key=lambda gpu: -gpu.busy.total)))

    @property
    def busiest(self) -> GpuActivity:
        """The GPU whose steps are examined."""
        return self.gpus[0]


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


@dataclass(frozen=True, slots=True, eq=False)
class HostWork:
    """When the threads that serve the training do each kind of work; the four may overlap."""

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


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One GPU's round: milliseconds, each a union over its streams, and numbers of kernels."""

    name: str
    kernel_ms: float  # without collectives and copies
    copy_ms: float
    collective_ms: float
    busy_ms: float  # any of the three
    kernels: float
    traced_ms: float  # its kernels in the whole trace, steps or not


@dataclass(frozen=True, slots=True)
class GpuUtilization:
    """All GPUs of the host, the busiest first, and how long the trainer waits for batches.

    ``unit`` says what a round is: a training step, or the trace where it has no steps. ``wait_ms`` is the
    whole wait, hidden or not; ``wait_before_ms`` the part before the GPU's first work, where its step
    begins. None is unknown.
    """

    unit: RoundUnit
    round_ms: float
    gpus: tuple[GpuShare, ...]
    wait_ms: float | None
    exposed_wait_ms: float | None  # while the busiest GPU idles between its first and its last work
    wait_before_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork, framework: Framework
    ) -> Self:
        """Sum up every GPU's work."""
        before = 0.0  # the first step's batch, before that step begins
        if steady.unit is RoundUnit.STEP:
            before = steady.scaled(waits_before(trace.host_lines, steady.stretches[0]).total)
        unseen = framework.no_pipeline and not host.waits
        return cls(
            steady.unit,
            steady.round_ms,
            tuple(
                GpuShare(
                    gpu.name,
                    steady.ms(gpu.kernels),
                    steady.ms(gpu.copies),
                    steady.ms(gpu.collectives),
                    steady.ms(gpu.busy),
                    int(steady.holds(gpu.kernel_starts_ps).sum()) / steady.rounds,
                    gpu.kernels.total / PS_PER_MS,
                )
                for gpu in activities.gpus
            ),
            None if unseen else steady.ms(host.waits) + before,
            None if unseen else steady.ms(host.waits - activities.busiest.busy),
            before,
        )

    @property
    def busiest(self) -> GpuShare:
        """The GPU whose steps are examined."""
        return self.gpus[0]


# The operation in the names of NCCL's and RCCL's kernels: ncclDevKernel_AllReduce_Sum_f32_RING_LL, …
KIND = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AllToAll|SendRecv)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Collectives:
    """The busiest GPU's kernels of NCCL or RCCL; ms and numbers per training step, or of the trace.

    A collective kernel runs while it waits for the other GPUs: ``ms`` includes that wait.
    """

    ms: float
    exposed_ms: float  # while no other kernel of the GPU runs
    kinds: tuple[tuple[str, float], ...]  # ("AllReduce", calls), the most frequent first

    @classmethod
    def measure(cls, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Separate the collectives' time by whether other kernels run meanwhile."""
        gpu, calls = activities.busiest, Counter[str]()
        of_type = np.array([COLLECTIVE.match(kind.name) is not None for kind in gpu.plane.types], bool)
        for line in work_lines(gpu.plane):
            kinds = line.kind[of_type[line.kind] & steady.holds(line.start_ps)]
            for kind, number in zip(*np.unique(kinds, return_counts=True), strict=True):
                named = KIND.search(gpu.plane.types[kind].name)
                calls[named[1] if named else "other"] += int(number)
        per_step = tuple((name, number / steady.rounds) for name, number in calls.most_common())
        return cls(steady.ms(gpu.collectives), steady.ms(gpu.collectives - gpu.kernels), per_step)
