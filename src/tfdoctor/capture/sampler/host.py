"""Samples the host: processor, memory, and pressure stalls."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tfdoctor.capture.machine import cpu_quota, statistics_file, throttled_us
from tfdoctor.capture.sampler import Sampler

TREE_S = 1.0  # How often to search for new processes of the run, which reads all of /proc


class HostSampler(Sampler):
    """Reads /proc through psutil; what the system does not provide is left out."""

    name = "host"

    def __init__(self) -> None:
        self.processes: dict[int, psutil.Process] = {}
        self.root: psutil.Process | None = None
        self.searched_at = 0.0
        self.statistics: Path | None = None
        self.quota: float | None = None

    def start(self, pid: int) -> None:
        """Take the first readings, from which later ones are differences."""
        self.root = psutil.Process(pid)
        self.statistics = statistics_file()
        self.quota = cpu_quota()
        self._run()
        psutil.cpu_percent(percpu=True)

    def read(self) -> dict[str, Any]:
        """Return one sample of the CPUs, the memory and the kernel's counters; percentages are since the last."""
        cores = psutil.cpu_percent(percpu=True)
        shares, rss = self._run()
        busy = sum(shares.values())
        memory = psutil.virtual_memory()
        host: dict[str, Any] = {
            "run_cpu_pct": round(busy, 1),
            "other_cpu_pct": round(max(0.0, sum(cores) - busy), 1),
            "processes_pct": {str(pid): round(pct, 1) for pid, pct in shares.items() if pct >= 1.0},
            "run_rss_bytes": rss,
            "memory_used_bytes": memory.total - memory.available,
            "memory_total_bytes": memory.total,
            "psi_cpu_us": _pressure("cpu"),
            "psi_memory_us": _pressure("memory"),
            "throttled_us": throttled_us(self.statistics) if self.statistics else None,
            "quota_cores": self.quota,
        }
        return {"host": {key: value for key, value in host.items() if value is not None}}

    def _run(self) -> tuple[dict[int, float], int]:
        """Return the CPU percent (of one core) of each of the run's processes, and the RSS of all."""
        shares: dict[int, float] = {}
        rss = 0
        for process in self._tree():
            try:
                with process.oneshot():
                    shares[process.pid] = process.cpu_percent()
                    rss += process.memory_info().rss
            except psutil.Error:  # it ended meanwhile
                self.processes.pop(process.pid, None)
        return shares, rss

    def _tree(self) -> list[psutil.Process]:
        """Return the run's processes, the same objects as before, since they store their last CPU time."""
        now = time.monotonic()
        if self.root is None or now - self.searched_at < TREE_S:
            return list(self.processes.values())
        self.searched_at = now
        try:
            tree = [self.root, *self.root.children(recursive=True)]
        except psutil.Error:
            return []
        for process in tree:
            if process.pid not in self.processes:
                with suppress(psutil.Error):  # it ended meanwhile
                    process.cpu_percent()  # the first is always 0: else its work counts as other programs'
        self.processes = {process.pid: self.processes.get(process.pid, process) for process in tree}
        return list(self.processes.values())


def _pressure(kind: str) -> int | None:
    """Return the total time that some task waited for a resource; None if the kernel does not say."""
    try:
        lines = Path(f"/proc/pressure/{kind}").read_text().splitlines()
    except OSError:  # an old kernel, psi=0, or masked
        return None
    totals = (int(line.rpartition("total=")[2]) for line in lines if line.startswith("some "))
    return next(totals, None)
