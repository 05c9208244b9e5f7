"""How much longer the slowest GPU of a host computes than the others, which wait for it."""

from dataclasses import dataclass
from statistics import median
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.utilization import GpuUtilization
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steady_steps import STEP
from tfdoctor.facts.tpu.time import COMPUTE, TpuTime
from tfdoctor.kinds import DeviceKind

WORKS = 0.01
"""Of the busiest one's computing time: a device with less is idle, not fast."""


@dataclass(frozen=True, slots=True)
class DeviceSkew:
    """The devices of one host that work; ms of computing (no collectives, no copies) per training step.

    ``exchanging_ms`` is the time in collectives, by device: the fast ones wait there. ``shown`` is the one
    whose stages Breakdown has.
    """

    computing_ms: dict[str, float]
    exchanging_ms: dict[str, float]
    shown: str = ""

    @classmethod
    def measure(
        cls, device: Device, gpus: GpuUtilization | Unavailable, tpus: TpuTime | Unavailable
    ) -> Self:
        """Take the devices' times side by side.

        Raises:
            Unavailable: there are no steps, or fewer than two devices work.
        """
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        of = gpus if device.kind == DeviceKind.GPU else tpus
        if isinstance(of, Unavailable):
            raise of
        if of.unit != STEP:
            raise Unavailable("the trace marks no steps, in which devices could be compared")
        rows = (
            {gpu.name: (gpu.kernel_ms, gpu.collective_ms) for gpu in of.gpus}
            if isinstance(of, GpuUtilization)
            else {core.name: (core.parts[COMPUTE], core.parts["collectives"]) for core in of.cores}
        )
        most = max((computing for computing, _ in rows.values()), default=0.0)
        rows = {name: row for name, row in rows.items() if row[0] > WORKS * most}
        if len(rows) < 2:  # noqa: PLR2004 - two to compare
            raise Unavailable("fewer than two accelerators of this host work in the traced steps")
        return cls(
            {name: row[0] for name, row in rows.items()},
            {name: row[1] for name, row in rows.items()},
            device.busiest.name if device.busiest else "",
        )

    @property
    def slowest(self) -> str:
        """The device that computes longest."""
        return max(self.computing_ms, key=lambda name: self.computing_ms[name])

    @property
    def lag_ms(self) -> float:
        """By how much the slowest is behind the median of the others."""
        return self.computing_ms[self.slowest] - median(self._others(self.computing_ms))

    @property
    def gain_ms(self) -> float:
        """What a step would lose if the slowest were as fast as the slowest of the others."""
        return self.computing_ms[self.slowest] - max(self._others(self.computing_ms))

    @property
    def waited_ms(self) -> float:
        """How much longer the others, in the median, are in collectives than the slowest is."""
        return median(self._others(self.exchanging_ms)) - self.exchanging_ms[self.slowest]

    @property
    def exchange_ms(self) -> float:
        """What the collectives take the device that comes last to them: nobody is waited for then."""
        return min(self.exchanging_ms.values())

    def _others(self, times: dict[str, float]) -> list[float]:
        return [ms for name, ms in times.items() if name != self.slowest]
