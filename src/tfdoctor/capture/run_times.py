"""Takes the times of a run: its begin and its end on three clocks, and what its cgroup says of memory."""

import os
import time
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.capture import cgroup
from tfdoctor.recording.manifest import RunTimes

# Ns. Linux slews the wall clock and the monotonic one together, so they part only where the first is set; NTP sets
# it for 128 ms and more, and half a second of a run can be seen.
SMALLEST_JUMP_NS = 500_000_000
# Ns. The clocks are read one after the other, some microseconds apart; no machine sleeps so shortly.
SHORTEST_SLEEP_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on the clocks of the system, in ns; ``slept_ns`` is how long the machine had slept by then."""

    monotonic_ns: int
    unix_ns: int
    slept_ns: int
    oom_kills: int | None

    @classmethod
    def now(cls) -> Self:
        """Return the present moment."""
        kills = cgroup.oom_kills()  # first: reading files takes longer than reading clocks
        now_ns, unix_ns = time.monotonic_ns(), time.time_ns()
        since_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)  # with the time that it slept
        return cls(now_ns, unix_ns, since_boot_ns - time.monotonic_ns(), kills)


def begun(at: Moment, pid: int) -> RunTimes:
    """Return the times of a run whose process was started at a moment, and the memory that it may use."""
    memory, limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), cgroup.memory_limit()
    return RunTimes(
        started_ns=at.monotonic_ns,
        started_unix_ns=at.unix_ns,
        pid=pid,
        limit_bytes=memory if limit is None else min(memory, limit),
    )


def ended(times: RunTimes, since: Moment, at: Moment) -> RunTimes:
    """Return the times of a run that began at one moment and ended at another."""
    lasted_ns = at.monotonic_ns - since.monotonic_ns
    slept_ns = at.slept_ns - since.slept_ns
    slept_ns = slept_ns if slept_ns >= SHORTEST_SLEEP_NS else 0
    jump_ns = at.unix_ns - since.unix_ns - lasted_ns - slept_ns
    known = at.oom_kills is not None and since.oom_kills is not None
    return replace(
        times,
        ended_ns=at.monotonic_ns,
        oom_kills=max(0, (at.oom_kills or 0) - (since.oom_kills or 0)) if known else None,
        suspended_ns=slept_ns,
        clock_jump_ns=jump_ns if abs(jump_ns) >= SMALLEST_JUMP_NS else 0,
    )
