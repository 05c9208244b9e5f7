"""NVIDIA GPUs through NVML: load, memory, clock, power, and why the clock is held back."""

import importlib
from collections.abc import Callable
from typing import Any

PERMANENT = (
    "NotSupported", "FunctionNotFound", "NoPermission", "LibraryMismatch", "InvalidArgument",
    "GpuIsLost",
)  # fmt: skip
"""Errors that will not go away: the call is given up."""

FAILURES = 5
"""Any call that fails so often in a row is given up."""

REASONS = {
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x20: "software-thermal",
    0x40: "hardware-thermal",
    0x80: "power-brake",
}
"""Why a clock is held back, as far as it is a problem: idle and chosen clocks are not."""

SM_CLOCK = 1
SLOW_TICKS = 5
"""Power and clock reasons go through the GPU's management unit: asked every fifth time only."""


class Probe:
    """A call that is given up for good after a permanent error, or too many errors in a row."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call, self.dead, self.error, self.failures = call, False, "", 0

    def __call__(self) -> Any:  # noqa: ANN401  # whatever NVML answers
        """Return the answer, or None."""
        if self.dead:
            return None
        try:
            value = self.call()
        except Exception as error:  # noqa: BLE001  # NVMLLibraryMismatchError is no NVMLError
            self.error, self.failures = type(error).__name__, self.failures + 1
            self.dead = self.failures >= FAILURES or any(name in self.error for name in PERMANENT)
            return None
        self.failures = 0
        return value


class Device:
    """One GPU and its probes."""

    def __init__(self, nvml: Any, index: int) -> None:  # noqa: ANN401  # pynvml has no types
        handle = nvml.nvmlDeviceGetHandleByIndex(index)

        def probe(name: str, *arguments: object) -> Probe:
            return Probe(lambda: getattr(nvml, name)(handle, *arguments))

        self.identity = {
            "index": index,
            "uuid": probe("nvmlDeviceGetUUID")(),
            "name": probe("nvmlDeviceGetName")(),
        }
        self.utilization = probe("nvmlDeviceGetUtilizationRates")
        self.memory = probe("nvmlDeviceGetMemoryInfo")
        self.clock = probe("nvmlDeviceGetClockInfo", SM_CLOCK)
        self.power = probe("nvmlDeviceGetPowerUsage")
        self.reasons = probe("nvmlDeviceGetCurrentClocksEventReasons")
        self.old_reasons = probe("nvmlDeviceGetCurrentClocksThrottleReasons")

    def read(self, *, slow: bool) -> dict[str, Any]:
        """Return what is known now; what is not supported is absent."""
        found: dict[str, Any] = dict(self.identity)
        if (share := self.utilization()) is not None:
            found.update(gpu_pct=share.gpu, memory_pct=share.memory)
        if (memory := self.memory()) is not None:
            found.update(memory_used_bytes=memory.used, memory_total_bytes=memory.total)
        found["sm_mhz"] = self.clock()
        if slow:
            found.update(self._slow())
        return {key: value for key, value in found.items() if value is not None}

    def _slow(self) -> dict[str, Any]:
        power = self.power()
        mask = self.reasons()
        if mask is None and self.reasons.dead:  # drivers before 535 know the older name only
            mask = self.old_reasons()
        return {
            "power_w": None if power is None else power / 1000,
            "throttle": None if mask is None else [n for bit, n in REASONS.items() if mask & bit],
        }

    def gaps(self) -> str:
        """Return which readings were given up, and why."""
        probes = {
            "utilization": self.utilization,
            "memory": self.memory,
            "clock": self.clock,
            "power": self.power,
        }
        dead = [f"{name} ({probe.error})" for name, probe in probes.items() if probe.dead]
        return f"GPU {self.identity['index']} does not tell {', '.join(dead)}" if dead else ""


class NvmlSampler:
    """All GPUs of the machine, where there is a driver."""

    name = "nvml"

    def __init__(self) -> None:
        self.nvml: Any = None
        self.devices: list[Device] = []
        self.tick = 0

    def start(self, pid: int) -> None:  # noqa: ARG002  # GPUs are sampled whoever uses them
        """Load the driver's library; raises where there is none."""
        self.nvml = importlib.import_module("pynvml")
        self.nvml.nvmlInit()
        count = self.nvml.nvmlDeviceGetCount()
        self.devices = [Device(self.nvml, index) for index in range(count)]

    def read(self) -> dict[str, Any]:
        """Return one sample of every GPU."""
        slow = self.tick % SLOW_TICKS == 0
        self.tick += 1
        return {"gpu": [device.read(slow=slow) for device in self.devices]}

    def stop(self) -> str:
        """Shut NVML down; the caller is the thread that read, so nobody is inside it."""
        gaps = "; ".join(filter(None, (device.gaps() for device in self.devices)))
        self.nvml.nvmlShutdown()
        return gaps
