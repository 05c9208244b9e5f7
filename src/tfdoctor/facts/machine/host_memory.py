"""The host's memory while the run went on: how full it was, and how long tasks waited for it."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording

NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes, and shares from 0 to 1; over all samples of the run."""

    total: float
    used: float  # the most in use by all programs
    by_run: float | None = None  # the run's highest RSS
    stalled: float | None = None  # share of the time in which some task waited for memory

    @classmethod
    def measure(cls, recording: Recording, framework: Framework) -> Self:
        """Read the samples."""
        rows = [(row.unix_ns, row.host) for row in recording.samples if row.host]
        hosts = [host for _, host in rows if host.memory_total_bytes]
        if not hosts:
            raise Unavailable(f"the machine's memory was not sampled{framework.with_tfdoctor}")
        run_bytes = [float(host.run_rss_bytes) for host in hosts if host.run_rss_bytes]
        # The kernel counts waits for memory (PSI, "some").
        counts = [(at, host.psi_memory_us) for at, host in rows if host.psi_memory_us is not None]
        stalled = None
        if counts:
            (first_ns, first), (last_ns, last) = counts[0], counts[-1]
            passed = (float(last_ns) - float(first_ns)) / NS_PER_US
            stalled = max(0.0, (float(last) - float(first)) / passed) if passed > 0 else None
        used = max(float(host.memory_used_bytes or 0) for host in hosts)
        return cls(float(hosts[-1].memory_total_bytes or 0), used, max(run_bytes, default=None), stalled)

    @property
    def share(self) -> float:
        """The highest share of the memory in use, 0 to 1."""
        return self.used / self.total
