"""How long the GPU is idle after a value was copied to the host, because the host waited for it.

A host that does not wait for the value launches ahead: the work after the copy was launched before it ended.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import GpuActivities, launches
from tfdoctor.facts.gpu.detours import Detours
from tfdoctor.facts.gpu.host_work import HostWork
from tfdoctor.facts.gpu.transfers import D2H, direction_of
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace import Intervals, Trace

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
