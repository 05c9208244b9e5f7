"""The processes that compute on a GPU board: those of the run, and others with their share of its time."""

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tfdoctor.capture.sampler.probe import Probe

WHOLE_PCT = 100.0  # Some drivers tell more than this of a process

US_PER_NS = 1e-3


class BoardProcesses:
    """Reads the processes of one board, which take 4.5 ms to list."""

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401  # pynvml has no types
        self.nvml, self.handle = nvml, handle
        self.listed = Probe(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        self.listed_before = Probe(lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle))
        self.utilization = Probe(self._utilization)
        self.last_us = int(time.time_ns() * US_PER_NS)

    def read(self, run: frozenset[int]) -> dict[str, Any] | None:
        """Count the processes; in a container the driver may report the host's process ids."""
        listed = self.listed()
        if listed is None and self.listed.dead:  # a driver without the present structure
            listed = self.listed_before()
        if listed is None:
            return None
        own = [process for process in listed if process.pid in run]
        foreign_ids = not own and any(not Path(f"/proc/{process.pid}").exists() for process in listed)
        others = {process.pid for process in listed} - {process.pid for process in own}
        busy = None if foreign_ids else self._busy(others)
        return {
            "run": len(own),
            "run_bytes": sum(process.usedGpuMemory or 0 for process in own),
            "others": len(listed) - len(own),
            "attribution": "assumed" if foreign_ids else "by process",
            **({} if busy is None else {"others_sm_pct": round(busy, 1)}),
        }

    def _busy(self, pids: set[int]) -> float | None:
        """Return the percent of the time in which kernels of these processes ran, since the last reading."""
        samples = self.utilization()
        if samples is None:
            return None
        shares: dict[int, list[float]] = defaultdict(list)
        for sample in samples:
            if sample.pid in pids:
                shares[sample.pid].append(min(WHOLE_PCT, sample.smUtil))
        return min(WHOLE_PCT, sum(sum(own) / len(own) for own in shares.values()))

    def _utilization(self) -> list[Any]:
        """Return the driver's samples since the last reading; none means that no process computed."""
        since, self.last_us = self.last_us, int(time.time_ns() * US_PER_NS)
        nothing = (self.nvml.NVML_SUCCESS, self.nvml.NVML_ERROR_NOT_FOUND)
        try:
            return list(self.nvml.nvmlDeviceGetProcessUtilization(self.handle, since))
        except self.nvml.NVMLError as error:
            if error.value in nothing:  # the library raises its code for success where there is no sample
                return []
            raise
