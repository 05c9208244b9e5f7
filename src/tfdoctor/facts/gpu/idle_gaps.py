"""The time in which no stream of the GPU works."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import NEVER, GpuActivities, HostWork, launches
from tfdoctor.facts.gpu.transfers import D2H, Detours, direction_of
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.intervals import pairs_of


class IdleCause(StrEnum):
    """What the host did while the GPU was idle, by priority.

    ``QUEUED``: the work after the gap had been launched before the gap began, so that no host could
    shorten it: the GPU itself takes a microsecond or more from one kernel to the next.
    """

    INPUT = "waiting for input"
    BETWEEN = "between steps"
    QUEUED = "work already launched"
    DISPATCH = "launching work"
    SYNC = "synchronizing with the GPU"
    PYTHON = "running Python"
    UNKNOWN = "unknown cause"


class GapSize(StrEnum):
    """The length of a whole gap between two pieces of the GPU's work, or to the end of the step.

    The shortest are the cost of a launch; the longest are no launches.
    """

    TINY = "below 10 µs"
    SMALL = "10 to 100 µs"
    MEDIUM = "0.1 to 1 ms"
    LARGE = "above 1 ms"


_EDGES_PS = (10_000_000, 100_000_000, 1_000_000_000)


@dataclass(frozen=True, slots=True)
class IdleGaps:
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
        gaps = pairs_of(
            gap for stretch in steady.stretches for gap in (Intervals((stretch,)) - gpu.busy.within(*stretch)).spans
        )
        starts, launched = launches(trace, gpu.plane)
        after = starts.searchsorted(gaps[:, 1])
        queued = np.append(starts, NEVER)[after] == gaps[:, 1]  # it ends with work
        queued &= np.append(launched, NEVER)[after] <= gaps[:, 0]  # that was launched before it began
        left = Intervals.merged(*gaps.T)
        claims = {
            IdleCause.INPUT: host.waits,
            IdleCause.BETWEEN: left - steady.calls,
            IdleCause.QUEUED: Intervals.merged(*gaps[queued].T),
            IdleCause.DISPATCH: host.launches,
            IdleCause.SYNC: host.syncs,
            IdleCause.PYTHON: host.python or Intervals(),  # where it is not known, its time is of an unknown cause
        }
        parts: dict[IdleCause, Intervals] = {}
        for cause, claimed in claims.items():
            parts[cause] = left & claimed
            left -= claimed
        parts[IdleCause.UNKNOWN] = left
        size = np.searchsorted(_EDGES_PS, gaps[:, 1] - gaps[:, 0], side="right")
        by_size = {name: gaps[size == place] for place, name in enumerate(GapSize)}
        times = {name: Intervals.merged(*sized.T) for name, sized in by_size.items()}
        return cls(
            idle_ms=steady.scaled(sum(time.total for time in times.values())),
            causes={cause: steady.scaled(part.total) for cause, part in parts.items()},
            sizes={name: steady.scaled(time.total) for name, time in times.items()},
            gaps={name: len(sized) / steady.rounds for name, sized in by_size.items()},
            dispatching={
                name: steady.scaled((time & parts[IdleCause.DISPATCH]).total) for name, time in times.items()
            },
            kernels=int(steady.holds(gpu.kernel_starts_ps).sum()) / steady.rounds,
        )

    @property
    def launching_ms(self) -> float:
        """The idle time in gaps below a millisecond while the host launches work, in ms."""
        return sum(ms for size, ms in self.dispatching.items() if size is not GapSize.LARGE)


# 2 µs: a gap that begins this soon after the copy begins with it; streams' clocks differ by less.
SETTLING_PS = 2_000_000


@dataclass(frozen=True, slots=True)
class HostSyncs:
    """The busiest GPU; numbers and ms per training step.

    ``host_ms`` and ``between_ms`` are the GPU's idle time after such copies, inside and outside of the
    call that is a step, less the waits for batches.
    """

    reads: float  # copies from device to host that are read there
    syncs: float  # after which the GPU ran out of work
    host_ms: float = 0.0
    between_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork, detours: Detours | None
    ) -> Self:
        """Find the idle stretches that begin with the end of a copy back, but for those of device-placement.

        An operation on the host takes that copy, and Python does not read it.
        """
        gpu, (first, last) = activities.busiest, (steady.stretches[0][0], steady.stretches[-1][1])
        back = np.array([direction_of(kind.name) is D2H for kind in gpu.plane.types], bool)
        ends = [(line.start_ps + line.duration_ps)[back[line.kind]] for line in work_lines(gpu.plane)]
        copied = np.setdiff1d(np.concatenate([np.zeros(0, np.int64), *ends]), detours.there_ps if detours else ())
        settling = Intervals.merged(copied, copied + SETTLING_PS + 1)
        starts, launched = launches(trace, gpu.plane)
        idle = Intervals(((first, last),)) - gpu.busy.within(first, last)
        launched = np.append(launched, np.iinfo(np.int64).min)[starts.searchsorted(idle.ends_ps)]
        began = idle.starts_ps
        # The work that ends a gap after a copy was launched after the gap began. Outliers are left out.
        synced = steady.holds(began) & settling.holds(began) & (launched > began)
        drained = Intervals.merged(began[synced], idle.ends_ps[synced]) - host.waits
        inside = steady.ms(drained & steady.calls)
        return cls(
            int(steady.holds(copied).sum()) / steady.rounds,
            int(synced.sum()) / steady.rounds,
            inside,
            steady.ms(drained) - inside,
        )
