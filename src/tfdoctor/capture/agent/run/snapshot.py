"""The clock as another thread sees it: the time in each call so far, of which no ns is lost or counted twice."""

from __future__ import annotations

from ..process.kept import time
from .repeated import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clock_state import ClockState
    from .places import CallSite
    from .repeated import Opened, RepeatedSteps

# How often another thread tries to read the times, every 0.1 ms: a switch that takes longer was interrupted.
TRIES = 100


def snapshot(clock: ClockState, repeats: RepeatedSteps) -> tuple[dict[CallSite, int], int]:
    """Return the time of each call so far and the present time, ns."""
    for _ in range(TRIES):
        before, opened, waiting = clock.now, repeats.under_way(), repeats.waiting
        if before is None:
            time.sleep(0.0001)
            continue
        noted, totals, now = list(waiting), dict(clock.totals), time.perf_counter_ns()
        same = clock.now is before and repeats.under_way() == opened
        if same and len(repeats.waiting) == len(noted):
            place, since = before[0], add(totals, noted, before[1])
            if noted and opened is not None and noted[-1][1] == opened[1]:
                opened = None  # it is over by now, and among the noted ones
            _until(totals, opened, place, since, now)
            return totals, now
    totals = dict(clock.totals)
    began, now = clock.began + sum(totals.values()), time.perf_counter_ns()
    totals[clock.current] = totals.get(clock.current, 0) + now - began
    return totals, now


def _until(totals: dict[CallSite, int], opened: Opened | None, place: CallSite, since: int, now: int) -> None:
    """Add the time since a moment: of what was under way, and of the call that is now."""
    if opened is not None:
        repeated, began, trains = opened
        totals[place] = totals.get(place, 0) + began - since
        place, since = repeated.called or repeated.step, began
        if trains is not None:
            trains = min(trains, now)
            totals[place] = totals.get(place, 0) + trains - since
            place, since = repeated.step, trains
    totals[place] = totals.get(place, 0) + now - since
