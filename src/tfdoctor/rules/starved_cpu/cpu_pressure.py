"""How long the run's tasks waited for a processor while the steps were traced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import HostSample, MachineSample
from tfdoctor.terms.humanize import number

NS_PER_US = 1000
"""Nanoseconds in a microsecond."""


@dataclass(frozen=True, slots=True)
class CpuPressure:
    """Counters of the kernel over the traced window, or the samples around it; None is unknown.

    ``throttled`` is the time for which the control group's quota stopped the run, per time that
    passed; each processor's queue counts, so it may exceed 1. ``waiting`` (0 to 1) is the share of the
    time in which some task of the machine was ready to run and had no processor (PSI, "some").
    """

    throttled: float | None = None
    waiting: float | None = None
    quota: float | None = None  # of the control group, in cores

    @property
    def throttling(self) -> str:
        """A clause that names the quota."""
        quota = f" of {number(self.quota)} cores" if self.quota else ""
        return f"the control group's quota{quota} throttles the run"

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Take the counters' differences from before the window to after it.

        Raises:
            Unavailable: the host was not sampled, or only once.
        """
        rows = _around_window(recording)
        if len(rows) < 2:  # noqa: PLR2004 - a difference needs two
            raise Unavailable("the CPU was sampled less than twice; record with `tfdoctor profile`")
        return cls(
            _share(rows, lambda host: host.throttled_us),
            _share(rows, lambda host: host.psi_cpu_us),
            rows[-1].host.quota_cores if rows[-1].host else None,
        )


def _around_window(recording: Recording) -> list[MachineSample]:
    """Return the samples from the last before the traced window to the first after it."""
    rows = [row for row in recording.samples if row.host]
    window = recording.manifest.window if recording.manifest else None
    if window is None or not window.stopped_unix_ns:
        return rows
    before = [row for row in rows if row.unix_ns <= window.started_unix_ns]
    after = [row for row in rows if row.unix_ns >= window.stopped_unix_ns]
    start = before[-1].unix_ns if before else window.started_unix_ns
    stop = after[0].unix_ns if after else window.stopped_unix_ns
    return [row for row in rows if start <= row.unix_ns <= stop]


def _share(rows: Sequence[MachineSample], counter: Callable[[HostSample], float | None]) -> float | None:
    """Return how fast a counter of microseconds ran, per microsecond that passed."""
    counts = [(row.unix_ns, counter(row.host)) for row in rows if row.host]
    known = [(unix_ns, count) for unix_ns, count in counts if count is not None]
    if len(known) < 2:  # noqa: PLR2004 - a difference needs two
        return None
    (first_ns, first), (last_ns, last) = known[0], known[-1]
    grown, passed = float(last) - float(first), (float(last_ns) - float(first_ns)) / NS_PER_US
    return max(0.0, grown / passed) if passed > 0 else None
