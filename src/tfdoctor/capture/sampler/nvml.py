"""Samples NVIDIA GPUs with NVML: load, memory, clock, power, and clock throttling."""

import importlib
import time
from pathlib import Path
from typing import Any

import psutil

from tfdoctor.capture.sampler.board import BoardSettings
from tfdoctor.capture.sampler.board_processes import BoardProcesses
from tfdoctor.capture.sampler.gpm import activities
from tfdoctor.capture.sampler.pci import DEVICES, has_nvidia_gpu
from tfdoctor.capture.sampler.probe import Probe
from tfdoctor.capture.sampler.unavailable import NoDevice
from tfdoctor.capture.sampler.visible import environment, visible

# Reasons for a lower clock that are a problem; idle and user-set clocks are not.
REASONS = {
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x20: "software-thermal",
    0x40: "hardware-thermal",
    0x80: "power-brake",
}

SM_CLOCK = 1

# NVML's fields that count bytes. (nvmlDeviceGetPcieThroughput would block for 20 ms a call.)
PCIE = {197: "pcie_tx_bytes", 198: "pcie_rx_bytes"}
# Shortest periods: of load, memory and clock; of readings by the GPU's management unit; of the processes, which
# take 4.5 ms to list.
FAST_S, SLOW_S, RARE_S = 0.2, 1.0, 5.0


class Due:
    """Tells when a slower reading is due."""

    def __init__(self, period_s: float) -> None:
        self.period_s, self.last = period_s, -float("inf")

    def __call__(self, now: float) -> bool:
        """Return whether the reading is due; if so, start the next period."""
        if now - self.last < self.period_s - 0.001:  # ticks vary by less than a millisecond
            return False
        self.last = now
        return True


class NvmlDevice:
    """One GPU and its probes."""

    def __init__(self, nvml: Any, index: int, visible: bool | None) -> None:  # noqa: ANN401, FBT001  # pynvml has no types
        handle = nvml.nvmlDeviceGetHandleByIndex(index)

        def probe(name: str, *arguments: object) -> Probe:
            return Probe(lambda: getattr(nvml, name)(handle, *arguments))

        self.identity = {
            "index": index,
            "uuid": probe("nvmlDeviceGetUUID")(),
            "name": probe("nvmlDeviceGetName")(),
            "sm_max_mhz": probe("nvmlDeviceGetMaxClockInfo", SM_CLOCK)(),
            "visible": visible,
        }
        self.utilization = probe("nvmlDeviceGetUtilizationRates")
        self.memory = probe("nvmlDeviceGetMemoryInfo")
        self.clock = probe("nvmlDeviceGetClockInfo", SM_CLOCK)
        self.power = probe("nvmlDeviceGetPowerUsage")
        self.energy = probe("nvmlDeviceGetTotalEnergyConsumption")
        self.reasons = probe("nvmlDeviceGetCurrentClocksEventReasons")
        self.old_reasons = probe("nvmlDeviceGetCurrentClocksThrottleReasons")
        self.fields = probe("nvmlDeviceGetFieldValues", list(PCIE))
        self.processes = BoardProcesses(nvml, handle)
        self.board = BoardSettings(nvml, handle)
        self.gpm = activities(nvml, handle)

    def read(self, run: frozenset[int] | None, *, slow: bool) -> dict[str, Any]:
        """Return the present readings; unsupported ones are left out.

        ``run`` contains the process ids of the run, or is None if GPU processes are not due.
        """
        readings: dict[str, Any] = dict(self.identity)
        if (share := self.utilization()) is not None:
            readings.update(gpu_pct=share.gpu, memory_pct=share.memory)
        if (memory := self.memory()) is not None:
            readings.update(memory_used_bytes=memory.used, memory_total_bytes=memory.total)
        readings["sm_mhz"] = self.clock()
        if slow:
            readings.update(self._slow())
        if run is not None:
            readings["processes"] = self.processes.read(run)
            readings["board"] = self.board.settings()
        readings.update(self._activity())
        return {key: value for key, value in readings.items() if value is not None}

    def _slow(self) -> dict[str, Any]:
        power, energy = self.power(), self.energy()
        mask = self.reasons()
        if mask is None and self.reasons.dead:  # drivers before 535 know the older name only
            mask = self.old_reasons()
        return {
            "power_w": None if power is None else power / 1000,
            "energy_j": None if energy is None else energy / 1000,
            "throttle": None if mask is None else [n for bit, n in REASONS.items() if mask & bit],
            **self.board.link(),
            **{
                PCIE[field.fieldId]: int(field.value.ullVal)
                for field in self.fields() or ()
                if field.nvmlReturn == 0
            },
        }

    def _activity(self) -> dict[str, Any]:
        """Return GPM's values of the GPU, or of each instance if MIG divides it."""
        activity = {instance: gpm.read() for instance, gpm in self.gpm.items()}
        if None in activity:
            return dict(activity[None])
        parts = [{"instance": number, **values} for number, values in activity.items() if values]
        return {"mig": parts} if parts else {}

    def failed_readings(self) -> str:
        """Return which readings failed for good, and why, or ""."""
        probes = {"utilization": self.utilization, "memory": self.memory, "clock": self.clock, "power": self.power}
        dead = [f"{name} ({probe.error})" for name, probe in probes.items() if probe.dead]
        lost = f"does not report {', '.join(dead)}" if dead else ""
        missing = next((gpm.missing for gpm in self.gpm.values() if gpm.missing), "")
        parts = [lost, f"matrix-unit activity is not sampled: {missing}" if missing else ""]
        reasons = "; ".join(filter(None, parts))
        return f"GPU {self.identity['index']}: {reasons}" if reasons else ""

    def close(self) -> None:
        """Free the samples of GPM, before NVML shuts down."""
        for gpm in self.gpm.values():
            gpm.close()


class NvmlSampler:
    """Samples all GPUs of the machine if it has a driver."""

    name = "nvml"

    def __init__(self, bus: Path = DEVICES) -> None:
        self.bus = bus
        self.nvml: Any = None
        self.devices: list[NvmlDevice] = []
        self.pid = 0
        self.fast, self.slow, self.rare = Due(FAST_S), Due(SLOW_S), Due(RARE_S)
        self.driver: dict[str, Any] = {}

    def start(self, pid: int) -> None:
        """Load the driver's library, which initializes the GPUs if no other program has them open.

        Raises:
            NoDevice: it does not answer, and the machine has no GPU of NVIDIA.
        """
        self.nvml = importlib.import_module("pynvml")
        began = time.monotonic()
        try:
            self.nvml.nvmlInit()
        except Exception as error:
            if has_nvidia_gpu(self.bus):
                raise
            # Asked last: WSL has no GPU on its bus.
            raise NoDevice("this machine has no NVIDIA GPU") from error
        self.pid = pid
        indices = range(self.nvml.nvmlDeviceGetCount())
        handles = [self.nvml.nvmlDeviceGetHandleByIndex(index) for index in indices]
        opened_ms = round((time.monotonic() - began) * 1000, 3)
        version = Probe(self.nvml.nvmlSystemGetDriverVersion)()
        self.driver = {"opened_ms": opened_ms, **({"version": version} if version else {})}
        uuids = [str(self.nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
        visibility = visible(environment(pid), uuids)
        self.devices = [NvmlDevice(self.nvml, index, visibility[index]) for index in indices]

    def read(self) -> dict[str, Any]:
        """Return one sample of every GPU, or nothing if the last is more recent than FAST_S."""
        now = time.monotonic()
        if not self.fast(now):
            return {}
        run = descendants(self.pid) if self.rare(now) else None
        slow = self.slow(now)
        driver = {} if run is None else {"driver": self.driver}
        return {**driver, "gpu": [device.read(run, slow=slow) for device in self.devices]}

    def stop(self) -> str:
        """Shut NVML down, in the thread that took the readings, so that no call is running."""
        failed = "; ".join(filter(None, (device.failed_readings() for device in self.devices)))
        for device in self.devices:
            device.close()
        self.nvml.nvmlShutdown()
        return failed


def descendants(pid: int) -> frozenset[int]:
    """Return the process ids of the run."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:  # it has ended
        return frozenset()
    return frozenset([pid, *(child.pid for child in children)])
