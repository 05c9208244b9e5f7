"""Samples NVIDIA GPUs with NVML: load, memory, clock, power, clock throttling, and the settings of the board."""

import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tfdoctor.capture.sampler import TICK_S, NoDevice, Sampler
from tfdoctor.capture.sampler.devices import DEVICES, environment_of, has_nvidia_gpu, visible
from tfdoctor.capture.sampler.gpm import activities

# Shortest periods: of load, memory and clock; of readings by the GPU's management unit; of the board's settings,
# and of its processes, which take 4.5 ms to list.
FAST_S, SLOW_S, RARE_S = 0.2, 1.0, 5.0

# NVML's numbers: a clock, a threshold of temperature, a kind of memory error, a counter since the driver's start.
SM_CLOCK, SLOWDOWN, UNCORRECTED, VOLATILE = 1, 1, 1, 0
# NVML's fields that count bytes. (nvmlDeviceGetPcieThroughput would block for 20 ms a call.)
PCIE = {197: "pcie_tx_bytes", 198: "pcie_rx_bytes"}
# Reasons for a lower clock that are a problem; idle and user-set clocks are not.
REASONS = {
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x20: "software-thermal",
    0x40: "hardware-thermal",
    0x80: "power-brake",
}
WHOLE_PCT = 100.0  # Some drivers tell more than this of a process
US_PER_NS = 1e-3

# Errors that do not go away: the call is not repeated.
PERMANENT = (
    *("NotSupported", "FunctionNotFound", "NoPermission", "LibraryMismatch", "InvalidArgument"),
    "GpuIsLost",
)
FAILURES = 5  # A call that fails this often in a row is not repeated

Entries = Mapping[str, Any]
Row = tuple[str, tuple[object, ...], Callable[[Any], Entries]]


def _as(name: str, change: Callable[[Any], Any] = lambda answer: answer) -> Callable[[Any], Entries]:
    """Return what makes an answer the entry of this name."""
    return lambda answer: {name: change(answer)}


def _thousandth(answer: float) -> float:
    return answer / 1000  # of mW or mJ


def _now(answers: tuple[int, int]) -> bool:
    return bool(answers[0])  # of a mode, which another may follow at the next restart


def _bytes(fields: Any) -> Entries:  # noqa: ANN401  # of NVML
    return {PCIE[one.fieldId]: int(one.value.ullVal) for one in fields if one.nvmlReturn == 0}


# What is read of a board, by how often: NVML's call without `nvmlDeviceGet`, its arguments, and our entries of the
# answer. The reference is https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
READINGS: dict[str, tuple[Row, ...]] = {
    "once": (
        ("UUID", (), _as("uuid")),
        ("Name", (), _as("name")),
        ("MaxClockInfo", (SM_CLOCK,), _as("sm_max_mhz")),
    ),
    "fast": (
        ("UtilizationRates", (), lambda rates: {"gpu_pct": rates.gpu, "memory_pct": rates.memory}),
        ("MemoryInfo", (), lambda memory: {"memory_used_bytes": memory.used, "memory_total_bytes": memory.total}),
        ("ClockInfo", (SM_CLOCK,), _as("sm_mhz")),
    ),
    "slow": (
        ("PowerUsage", (), _as("power_w", _thousandth)),
        ("TotalEnergyConsumption", (), _as("energy_j", _thousandth)),
        # Drivers before 535 know the older name only.
        (
            *("CurrentClocksEventReasons CurrentClocksThrottleReasons", ()),
            _as("throttle", lambda mask: [name for bit, name in REASONS.items() if mask & bit]),
        ),
        ("CurrPcieLinkGeneration", (), _as("pcie_gen")),  # in use; lower while idle
        ("CurrPcieLinkWidth", (), _as("pcie_width")),  # same, in lanes
        ("FieldValues", (list(PCIE),), _bytes),
    ),
    "board": (  # what lasts for a run
        ("PersistenceMode", (), _as("persistence", bool)),  # the driver stays loaded without clients; Linux only
        ("EccMode", (), _as("ecc", _now)),  # memory errors are corrected
        ("MigMode", (), _as("mig", _now)),  # the board is divided into instances
        ("EnforcedPowerLimit", (), _as("power_limit_w", _thousandth)),  # in force, after all limiters
        ("PowerManagementDefaultLimit", (), _as("power_default_w", _thousandth)),  # after a restart
        # The lowest and the highest limit that may be set.
        ("PowerManagementLimitConstraints", (), _as("power_max_w", lambda limits: limits[1] / 1000)),
        # From which the hardware lowers clocks; not on Ada and later.
        ("TemperatureThreshold", (SLOWDOWN,), _as("slowdown_c")),
        ("TotalEccErrors", (UNCORRECTED, VOLATILE), _as("ecc_uncorrected")),  # since the driver was loaded
        ("MaxPcieLinkGeneration", (), _as("pcie_max_gen")),  # the highest that board and slot both have
        ("MaxPcieLinkWidth", (), _as("pcie_max_width")),  # the widest that both have, in lanes
    ),
}
# Readings that everybody expects, by call: where one fails for good, the status of the sampler says it.
EXPECTED = {"utilization": "UtilizationRates", "memory": "MemoryInfo", "clock": "ClockInfo", "power": "PowerUsage"}


class Probe:
    """A call that is not repeated after a permanent error, or FAILURES errors in a row; the next is made then."""

    def __init__(self, *calls: Callable[[], Any]) -> None:
        self.calls, self.error, self.failures = list(calls), "", 0

    @property
    def dead(self) -> bool:
        """Whether no call is left."""
        return not self.calls

    def __call__(self) -> Any:  # noqa: ANN401  # the answer's type depends on the call
        """Return the answer, or None after an error."""
        while self.calls:
            try:
                answer = self.calls[0]()
            except Exception as error:  # noqa: BLE001  # NVMLLibraryMismatchError is no NVMLError
                self.error, self.failures = type(error).__name__, self.failures + 1
                if self.failures < FAILURES and not any(name in self.error for name in PERMANENT):
                    return None
                self.failures = 0
                del self.calls[0]
            else:
                self.failures = 0
                return answer
        return None


class NvmlDevice:
    """One GPU and its probes."""

    def __init__(self, nvml: Any, index: int, visible: bool | None) -> None:  # noqa: ANN401, FBT001  # pynvml has no types
        self.nvml, self.handle = nvml, nvml.nvmlDeviceGetHandleByIndex(index)
        rows = (row for rows in READINGS.values() for row in rows)
        self.probes = {names: self._probe(names, *arguments) for names, arguments, _ in rows}
        self.listed = self._probe("ComputeRunningProcesses ComputeRunningProcesses_v2")
        self.utilization = Probe(self._utilization)
        self.last_us = int(time.time_ns() * US_PER_NS)
        self.identity = {"index": index, **self._readings("once"), "visible": visible}
        self.gpm = activities(nvml, self.handle)

    def _probe(self, names: str, *arguments: object) -> Probe:
        """Return the probe of a call; of several names, the next is for drivers that do not know the one before."""

        def call(name: str) -> Callable[[], Any]:
            return lambda: getattr(self.nvml, f"nvmlDeviceGet{name}")(self.handle, *arguments)

        return Probe(*map(call, names.split()))

    def _readings(self, how_often: str) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for names, _, made in READINGS[how_often]:
            if (answer := self.probes[names]()) is not None:
                entries.update(made(answer))
        return entries

    def read(self, run: frozenset[int] | None, *, slow: bool) -> dict[str, Any]:
        """Return the present readings; unsupported ones are left out.

        ``run`` contains the process ids of the run, or is None if GPU processes are not due.
        """
        readings = {**self.identity, **self._readings("fast")}
        if slow:
            readings.update(self._readings("slow"))
        if run is not None:
            readings.update(processes=self._processes(run), board=self._readings("board"))
        activity = {instance: gpm.read() for instance, gpm in self.gpm.items()}
        parts = [
            {"instance": number, **values} for number, values in activity.items() if number is not None and values
        ]
        readings.update({**activity.get(None, {}), **({"mig": parts} if parts else {})})
        return {key: value for key, value in readings.items() if value is not None}

    def _processes(self, run: frozenset[int]) -> dict[str, Any] | None:
        """Count the processes; in a container the driver may report the host's process ids."""
        listed = self.listed()
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

    def failed_readings(self) -> str:
        """Return which readings failed for good, and why, or ""."""
        probes = {name: self.probes[call] for name, call in EXPECTED.items()}
        dead = [f"{name} ({probe.error})" for name, probe in probes.items() if probe.dead]
        lost = f"does not report {', '.join(dead)}" if dead else ""
        missing = next((gpm.missing for gpm in self.gpm.values() if gpm.missing), "")
        parts = [lost, f"matrix-unit activity is not sampled: {missing}" if missing else ""]
        reasons = "; ".join(filter(None, parts))
        return f"GPU {self.identity['index']}: {reasons}" if reasons else ""


class NvmlSampler(Sampler):
    """Samples all GPUs of the machine if it has a driver."""

    name = "nvml"
    every_s = FAST_S

    def __init__(self, bus: Path = DEVICES) -> None:
        self.bus = bus
        self.nvml: Any = None
        self.devices: list[NvmlDevice] = []
        self.pid = 0
        self.read_at = dict.fromkeys((SLOW_S, RARE_S), -float("inf"))
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
        visibility = visible(environment_of(pid), uuids)
        self.devices = [NvmlDevice(self.nvml, index, visibility[index]) for index in indices]

    def _is_due(self, period_s: float) -> bool:
        """Say whether a slower reading is due; if so, its next period starts."""
        now = time.monotonic()
        due = now - self.read_at[period_s] >= period_s - TICK_S
        if due:
            self.read_at[period_s] = now
        return due

    def read(self) -> dict[str, Any]:
        """Return one sample of every GPU."""
        run = descendants(self.pid) if self._is_due(RARE_S) else None
        slow = self._is_due(SLOW_S)
        driver = {} if run is None else {"driver": self.driver}
        return {**driver, "gpu": [device.read(run, slow=slow) for device in self.devices]}

    def stop(self) -> str:
        """Shut NVML down, in the thread that took the readings, so that no call is running."""
        failed = "; ".join(filter(None, (device.failed_readings() for device in self.devices)))
        for gpm in (gpm for device in self.devices for gpm in device.gpm.values()):
            gpm.close()
        self.nvml.nvmlShutdown()
        return failed


def descendants(pid: int) -> frozenset[int]:
    """Return the process ids of the run."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:  # it has ended
        return frozenset()
    return frozenset([pid, *(child.pid for child in children)])
