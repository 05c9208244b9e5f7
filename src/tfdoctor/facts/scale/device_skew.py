"""How much longer the slowest GPU of a host computes than the others, which wait for it."""

from dataclasses import dataclass
from statistics import median
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.utilization import GpuUtilization
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steady_steps import RoundUnit
from tfdoctor.facts.tpu.time import COLLECTIVE, COMPUTE, TpuTime
from tfdoctor.terms.kinds import DeviceKind

WORKS = 0.01  # Share of the busiest device's computing time below which a device is idle, not fast


@dataclass(frozen=True, slots=True)
class DeviceSkew:
    """The working devices of one host; ms of computing (no collectives, no copies) per training step.

    ``exchanging_ms`` is the time in collectives by device, where the fast ones wait. ``shown`` is the
    device whose stages are in Breakdown.
    """

    computing_ms: dict[str, float]
    exchanging_ms: dict[str, float]
    shown: str = ""

    @classmethod
    def measure(cls, device: Device, gpus: GpuUtilization | Unavailable, tpus: TpuTime | Unavailable) -> Self:
        """Collect the devices' times."""
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        devices = gpus if device.kind == DeviceKind.GPU else tpus
        if isinstance(devices, Unavailable):
            raise devices
        if devices.unit is not RoundUnit.STEP:
            raise Unavailable("the trace marks no steps in which to compare devices")
        if isinstance(devices, GpuUtilization):
            times = {gpu.name: (gpu.kernel_ms, gpu.collective_ms) for gpu in devices.gpus}
        else:
            times = {core.name: (core.parts[COMPUTE], core.parts[COLLECTIVE]) for core in devices.cores}
        most = max((computing for computing, _ in times.values()), default=0.0)
        times = {name: row for name, row in times.items() if row[0] > WORKS * most}  # the others are idle
        if len(times) < 2:  # noqa: PLR2004 - two to compare
            raise Unavailable("fewer than two accelerators of this host work in the traced steps")
        computing, exchanging = ({name: row[at] for name, row in times.items()} for at in (0, 1))
        return cls(computing, exchanging, device.busiest.name if device.busiest else "")

    @property
    def slowest(self) -> str:
        """The device that computes longest."""
        return max(self.computing_ms, key=lambda name: self.computing_ms[name])

    @property
    def lag_ms(self) -> float:
        """How much longer the slowest computes than the median of the others, in ms."""
        return self.computing_ms[self.slowest] - median(self._others(self.computing_ms))

    @property
    def gain_ms(self) -> float:
        """The time saved per step if the slowest were as fast as the second slowest, in ms."""
        return self.computing_ms[self.slowest] - max(self._others(self.computing_ms))

    @property
    def waited_ms(self) -> float:
        """How much longer the median of the others is in collectives than the slowest, in ms."""
        return median(self._others(self.exchanging_ms)) - self.exchanging_ms[self.slowest]

    def _others(self, times: dict[str, float]) -> list[float]:
        return [ms for name, ms in times.items() if name != self.slowest]
