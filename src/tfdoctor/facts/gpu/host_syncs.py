"""How long the GPU is idle after a value was copied to the host, because the host waited for it.

A host that does not wait for the value launches ahead: the work after the copy was launched before it ended.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.gpu.correlation import launch_times, starts_and_launches
from tfdoctor.facts.gpu.host_work import HostWork
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace import Intervals, Plane, Trace
from tfdoctor.trace.names import COPY_DIRECTION

SETTLING_PS = 2_000_000
"""2 µs: a gap that begins this soon after the copy begins with it; streams' clocks differ by less."""


@dataclass(frozen=True, slots=True)
class HostSyncs:
    """The busiest GPU; numbers and ms per training step.

    ``host_ms`` and ``between_ms`` are the GPU's idle time after such copies, inside and outside of the
    call that is a step, less the waits for batches.
    """

    reads: float  # copies from device to host
    syncs: float  # after which the GPU ran out of work
    host_ms: float = 0.0
    between_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork
    ) -> Self:
        """Find the idle stretches that begin with the end of a copy back.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        plane = activities.busiest.plane
        ends = _copied_back(plane)
        starts, launches = starts_and_launches(plane, launch_times(trace))
        gaps = [
            gap
            for gap in _gaps(activities.busiest.busy, steady)
            if _follows(gap[0], ends) and _launched_later(gap, starts, launches)
        ]
        drained = Intervals.union(gaps) - host.waits
        inside = steady.ms(drained & steady.calls)
        return cls(
            int(steady.holds(ends).sum()) / steady.rounds,
            len(gaps) / steady.rounds,
            inside,
            steady.ms(drained) - inside,
        )

    @property
    def total_ms(self) -> float:
        """The idle time after such copies, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms


def _gaps(busy: Intervals, steady: SteadySteps) -> list[tuple[int, int]]:
    """Return the idle stretches from the first step to the last; those of outliers left out."""
    first, last = steady.stretches[0][0], steady.stretches[-1][1]
    whole = (Intervals(((first, last),)) - busy.within(first, last)).spans
    starts = np.array([start for start, _ in whole], np.int64)
    return [gap for gap, held in zip(whole, steady.holds(starts), strict=True) if held]


def _copied_back(plane: Plane) -> NDArray[np.int64]:
    """Return (n,) when copies from device to host ended, in order."""
    back = [
        (letters := COPY_DIRECTION.search(kind.name)) is not None
        and "".join(letters.groups()).upper() == "DH"
        for kind in plane.types
    ]
    copied = [(line, np.array(back, bool)[line.kind]) for line in work_lines(plane)]
    ends = [(line.start_ps + line.duration_ps)[mask] for line, mask in copied]
    return np.sort(np.concatenate(ends)) if ends else np.zeros(0, np.int64)


def _follows(start: int, ends: NDArray[np.int64]) -> bool:
    at = int(np.searchsorted(ends, start, side="right")) - 1
    return at >= 0 and start - int(ends[at]) <= SETTLING_PS


def _launched_later(
    gap: tuple[int, int], starts: NDArray[np.int64], launches: NDArray[np.int64]
) -> bool:
    """Say whether the work that ends the gap was launched after the gap began."""
    at = int(np.searchsorted(starts, gap[1]))
    return at < len(starts) and min(int(launches[at]), gap[1]) > gap[0]
