"""When the host launched a GPU's work: call and work have the same correlation id."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.run.device import work_lines
from tfdoctor.trace import Plane, Trace
from tfdoctor.trace.intervals import pairs_of

NEVER = np.iinfo(np.int64).max
"""The launch time of work whose launching call is not in the trace."""


def launch_times(trace: Trace) -> dict[int, int]:
    """Return when each launching call of the host ended, in ps, by correlation id."""
    ended: dict[int, int] = {}
    for line in trace.host_lines:
        events, ids = line.stats.ids("correlation_id")
        ends = line.start_ps[events] + line.duration_ps[events]
        ended |= dict(zip(ids.tolist(), ends.tolist(), strict=True))
    return ended


def starts_and_launches(plane: Plane, launched: Mapping[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n,) when a GPU's work started, in order, and (n,) when it was launched, or ``NEVER``."""
    rows: list[tuple[int, int]] = []
    for line in work_lines(plane):
        calls = line.stats.ids_of("correlation_id", np.arange(len(line))).tolist()
        launched_ps = [launched.get(call, NEVER) for call in calls]
        rows += zip(line.start_ps.tolist(), launched_ps, strict=True)
    starts, launches = pairs_of(sorted(rows)).T
    return starts, launches
