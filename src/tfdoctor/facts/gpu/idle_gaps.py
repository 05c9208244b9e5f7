"""The time in which no stream of the GPU works: its gaps, and what the host did meanwhile.

Each instant has one cause, the first of ``IdleCause`` that applies; so the causes sum to the idle time,
and together with the time in which the GPU works to the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.gpu.correlation import launch_times, starts_and_launches
from tfdoctor.facts.gpu.host_work import HostWork
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace import Intervals, Plane, Trace


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


_EDGES_PS = (0, 10_000_000, 100_000_000, 1_000_000_000, 2**63)


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """The busiest GPU's idle time. Milliseconds and counts per training step, or of the whole trace."""

    idle_ms: float
    causes: Mapping[IdleCause, float]  # ms by cause, sums to idle_ms
    sizes: Mapping[GapSize, float]  # ms by size of the gap, sums to idle_ms
    gaps: Mapping[GapSize, float]  # number of gaps by size
    dispatching: Mapping[GapSize, float]  # ms by size, sums to causes[IdleCause.DISPATCH]
    kernels: float  # per step
    python_known: bool  # False: Python's time counts as UNKNOWN

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork
    ) -> Self:
        """Divide the idle time of every steady step.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        gaps = _gaps(activities.busiest.busy, steady)
        queued = Intervals.union(_queued(gaps, activities.busiest.plane, launch_times(trace)))
        parts = _by_cause(gaps, steady, host, queued)
        by_size = {size: _of_size(gaps, low, high) for size, (low, high) in _sizes().items()}
        return cls(
            idle_ms=_ms(gaps, steady),
            causes={cause: steady.scaled(intervals.total) for cause, intervals in parts.items()},
            sizes={size: _ms(sized_gaps, steady) for size, sized_gaps in by_size.items()},
            gaps={size: len(sized_gaps) / steady.rounds for size, sized_gaps in by_size.items()},
            dispatching={
                size: steady.scaled((Intervals.union(sized_gaps) & parts[IdleCause.DISPATCH]).total)
                for size, sized_gaps in by_size.items()
            },
            kernels=int(steady.holds(activities.busiest.kernel_starts_ps).sum()) / steady.rounds,
            python_known=host.python is not None,
        )

    @property
    def launching_ms(self) -> float:
        """The idle time in gaps below a millisecond while the host launches work, in ms."""
        return sum(ms for size, ms in self.dispatching.items() if size is not GapSize.LARGE)


Gaps = list[tuple[int, int]]
"""Starts and ends, in ps; gaps do not overlap, but may touch where a step ends."""


def _sizes() -> dict[GapSize, tuple[int, int]]:
    return dict(zip(GapSize, pairwise(_EDGES_PS), strict=True))


def _gaps(busy: Intervals, steady: SteadySteps) -> Gaps:
    return [
        gap
        for stretch in steady.stretches
        for gap in (Intervals((stretch,)) - busy.within(*stretch)).spans
    ]


def _of_size(gaps: Gaps, low: int, high: int) -> Gaps:
    return [(start, end) for start, end in gaps if low <= end - start < high]


def _ms(gaps: Gaps, steady: SteadySteps) -> float:
    return steady.scaled(sum(end - start for start, end in gaps))


def _queued(gaps: Gaps, plane: Plane, launched: Mapping[int, int]) -> Gaps:
    """Return the gaps that end with work that was launched before they began."""
    starts, launches = starts_and_launches(plane, launched)
    after = np.searchsorted(starts, np.array([end for _, end in gaps], np.int64))
    return [
        (start, end)
        for (start, end), at in zip(gaps, after.tolist(), strict=True)
        if at < len(starts) and starts[at] == end and min(launches[at], end) <= start
    ]


def _by_cause(
    gaps: Gaps, steady: SteadySteps, host: HostWork, queued: Intervals
) -> dict[IdleCause, Intervals]:
    """Return disjoint intervals by cause."""
    left = Intervals.union(gaps)
    claims = {
        IdleCause.INPUT: host.waits,
        IdleCause.BETWEEN: left - steady.calls,
        IdleCause.QUEUED: queued,
        IdleCause.DISPATCH: host.launches,
        IdleCause.SYNC: host.syncs,
        IdleCause.PYTHON: host.python or Intervals(),
    }
    parts: dict[IdleCause, Intervals] = {}
    for cause, claimed in claims.items():
        parts[cause] = left & claimed
        left -= claimed
    return parts | {IdleCause.UNKNOWN: left}
