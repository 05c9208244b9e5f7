"""When the host launched a GPU's work: call and work have the same correlation id."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.run.device import work_lines
from tfdoctor.trace import Plane, Trace

NEVER = np.iinfo(np.int64).max
"""The launch time of work whose launching call is not in the trace."""


def launch_times(trace: Trace) -> dict[int, int]:
    """Return when each launching call of the host ended, in ps, by correlation id."""
    return {
        int(stats["correlation_id"]): int(line.start_ps[at] + line.duration_ps[at])
        for line in trace.host_lines
        for at, stats in line.stats.items()
        if "correlation_id" in stats
    }


def starts_and_launches(
    plane: Plane, launched: Mapping[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n,) when a GPU's work started, in order, and (n,) when it was launched, or ``NEVER``."""
    rows = [
        (int(start), launched.get(int(line.stats.get(at, {}).get("correlation_id", 0)), NEVER))
        for line in work_lines(plane)
        for at, start in enumerate(line.start_ps)
    ]
    table = np.array(sorted(rows), np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
