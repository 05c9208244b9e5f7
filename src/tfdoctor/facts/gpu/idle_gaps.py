"""While no stream of the GPU works: for how long, in how long gaps, and what the host did meanwhile.

Each instant has one cause, the first of ``CAUSES`` that holds; so the causes sum to the idle time, and
with the time in which the GPU works to the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.gpu.correlation import first_launches, launches
from tfdoctor.facts.gpu.host_work import HostWork
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace import Intervals, Plane, Trace

INPUT, BETWEEN, QUEUED, DISPATCH, SYNC, PYTHON, UNSEEN = (
    "waiting for input", "between steps", "ahead of the GPU", "dispatching", "waiting for the device",
    "in Python", "nothing seen",
)  # fmt: skip
CAUSES = (INPUT, BETWEEN, QUEUED, DISPATCH, SYNC, PYTHON, UNSEEN)
"""``QUEUED``: what comes after the gap had been launched before the gap began, so that no host could
have shortened it: the GPU itself takes a microsecond or more from one kernel to the next."""

SIZES = ("below 10 µs", "10 to 100 µs", "0.1 to 1 ms", "above 1 ms")
"""Of a whole gap, from the end of one piece of the GPU's work to the start of the next, or to the end
of the step. The first are what a launch costs; the last are no launches."""

_EDGES_PS = (0, 10_000_000, 100_000_000, 1_000_000_000, 2**63)


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """The busiest GPU's idle time. Milliseconds and counts per training step, or of the whole trace."""

    idle_ms: float
    causes: Mapping[str, float]  # ms by cause, sums to idle_ms
    sizes: Mapping[str, float]  # ms by size of the gap, sums to idle_ms
    gaps: Mapping[str, float]  # number of gaps by size
    dispatching: Mapping[str, float]  # ms of DISPATCH by size of the gap, sums to causes[DISPATCH]
    kernels: float  # per step
    python_told: bool  # False: Python's time is not told from UNSEEN

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork
    ) -> Self:
        """Divide the idle time of every typical step.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        gaps = _gaps(activities.busiest.busy, steady)
        queued = Intervals.union(_queued(gaps, activities.busiest.plane, launches(trace)))
        parts = _by_cause(gaps, steady, host, queued)
        by_size = {size: _of_size(gaps, low, high) for size, (low, high) in _sizes().items()}
        return cls(
            idle_ms=_ms(gaps, steady),
            causes={cause: steady.scaled(intervals.total) for cause, intervals in parts.items()},
            sizes={size: _ms(sized_gaps, steady) for size, sized_gaps in by_size.items()},
            gaps={size: len(sized_gaps) / steady.rounds for size, sized_gaps in by_size.items()},
            dispatching={
                size: steady.scaled((Intervals.union(sized_gaps) & parts[DISPATCH]).total)
                for size, sized_gaps in by_size.items()
            },
            kernels=int(steady.holds(activities.busiest.launched_ps).sum()) / steady.rounds,
            python_told=host.python is not None,
        )

    @property
    def launching_ms(self) -> float:
        """The idle time in gaps below a millisecond while the host dispatches: what launching costs."""
        return sum(self.dispatching[size] for size in SIZES[:-1])


Gaps = list[tuple[int, int]]
"""Starts and ends, ps; they do not overlap, yet may touch where a step ends."""


def _sizes() -> dict[str, tuple[int, int]]:
    return dict(zip(SIZES, pairwise(_EDGES_PS), strict=True))


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
    """Return the gaps that end with work which was launched before they began."""
    starts, known = first_launches(plane, launched)
    after = np.searchsorted(starts, np.array([end for _, end in gaps], np.int64))
    return [
        (start, end)
        for (start, end), at in zip(gaps, after.tolist(), strict=True)
        if at < len(starts) and starts[at] == end and min(known[at], end) <= start
    ]


def _by_cause(
    gaps: Gaps, steady: SteadySteps, host: HostWork, queued: Intervals
) -> dict[str, Intervals]:
    """Return disjoint intervals by cause."""
    left = Intervals.union(gaps)
    claims = {
        INPUT: host.waits,
        BETWEEN: left - steady.calls,
        QUEUED: queued,
        DISPATCH: host.launches,
        SYNC: host.stands,
        PYTHON: host.python or Intervals(),
    }
    parts = {}
    for cause, claimed in claims.items():
        parts[cause] = left & claimed
        left -= claimed
    return parts | {UNSEEN: left}
