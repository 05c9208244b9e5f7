"""Where the host stands until the GPU is done, and how long the GPU then has nothing to do."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.gpu_work import GpuWorks
from tfdoctor.facts.host_work import HostWork
from tfdoctor.facts.transfers import D2H, Transfers
from tfdoctor.facts.typical import Typical
from tfdoctor.trace import Intervals

SETTLING_PS = 20_000_000
"""20 µs: after the GPU's last work the driver takes up to so long to let the host go on."""


@dataclass(frozen=True, slots=True)
class HostSyncs:
    """The busiest GPU; numbers and ms per training step.

    ``drained_ms`` is the GPU's idle time from when it ran out of work while the host stood there until
    the host had launched the next, less the host's waits for batches and the time between two calls.
    """

    syncs: float  # how often the host stood until the GPU had run out of work
    stood_ms: float
    drained_ms: float
    reads: float  # copies from device to host

    @classmethod
    def measure(
        cls, works: GpuWorks, typical: Typical, host: HostWork, transfers: Transfers
    ) -> Self:
        """Find the idle stretches that begin while the host stands.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        stands = np.array(host.stands.spans, np.int64).reshape(-1, 2)
        found = [
            gap
            for stretch in typical.stretches
            for gap in (Intervals((stretch,)) - works.busiest.busy.within(*stretch)).spans
            if _stood(gap[0], stands)
        ]
        drained = (Intervals.union(found) & typical.calls) - host.waits
        return cls(
            len(found) / typical.rounds,
            typical.ms(host.stands),
            typical.ms(drained),
            transfers[D2H].count,
        )


def _stood(start: int, stands: np.ndarray) -> bool:
    """Say whether the host stood when the GPU ran out of work."""
    at = int(np.searchsorted(stands[:, 0], start, side="right")) - 1
    return at >= 0 and start <= stands[at, 1] + SETTLING_PS and start > stands[at, 0]
