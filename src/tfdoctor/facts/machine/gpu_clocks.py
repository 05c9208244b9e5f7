"""How fast the GPUs' clocks ran while they were busy, and what held them back."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.kinds import DeviceKind
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuSample

BUSY_PCT = 50
"""Of the time with a kernel on the GPU: an idle GPU lowers its clock, and nothing is lost by that."""


@dataclass(frozen=True, slots=True)
class GpuClock:
    """One GPU while it is busy. ``told`` counts the samples that say what holds the clock back."""

    name: str
    index: int  # NVML's
    told: int
    reasons: Mapping[str, int]  # samples by reason; one sample may have several
    held_mhz: Mapping[str, float]  # mean clock of the multiprocessors by reason, where sampled
    top_mhz: float | None  # the highest that the GPU has

    def share(self, reason: str) -> float:
        """Return how much of the busy time a reason held the clock back."""
        return self.reasons.get(reason, 0) / self.told if self.told else 0.0

    def ratio(self, reason: str) -> float | None:
        """Return the clock so held over the highest; None when one of them is not known."""
        held = self.held_mhz.get(reason)
        return min(1.0, held / self.top_mhz) if held and self.top_mhz else None


@dataclass(frozen=True, slots=True)
class GpuClocks:
    """All GPUs that the run may use and that were busy, over the whole run."""

    gpus: tuple[GpuClock, ...]

    @classmethod
    def measure(cls, recording: Recording, device: Device, framework: Framework) -> Self:
        """Gather the samples of each GPU.

        Raises:
            Unavailable: no GPU was sampled while it was busy.
        """
        rows: dict[int, list[GpuSample]] = defaultdict(list)
        for sample in recording.samples:
            for gpu in sample.gpu:
                if gpu.visible is not False and (gpu.gpu_pct or 0) >= BUSY_PCT:
                    rows[gpu.index].append(gpu)
        found = [_clock(index, mine, device) for index, mine in sorted(rows.items())]
        known = tuple(gpu for gpu in found if gpu.told)
        if not known:
            raise Unavailable(_unseen(device, framework))
        return cls(known)


def _unseen(device: Device, framework: Framework) -> str:
    if device.kind != DeviceKind.GPU:
        return f"clocks are sampled of NVIDIA GPUs, and the run was on a {device.kind}"
    return (
        f"no busy GPU's clock was sampled (some seconds of an NVIDIA GPU){framework.with_tfdoctor}"
    )


def _clock(index: int, rows: list[GpuSample], device: Device) -> GpuClock:
    told = [(row, row.throttle) for row in rows if row.throttle is not None]
    reasons = Counter(reason for _, held in told for reason in set(held))
    clocks = {
        reason: [float(row.sm_mhz) for row, held in told if reason in held and row.sm_mhz]
        for reason in reasons
    }
    plane = device.busiest.stats if device.busiest else {}
    top = max((float(row.sm_max_mhz or 0) for row in rows), default=0.0)
    return GpuClock(
        name=rows[-1].name or f"GPU {index}",
        index=index,
        told=len(told),
        reasons=dict(reasons),
        held_mhz={reason: float(np.mean(mine)) for reason, mine in clocks.items() if mine},
        top_mhz=top or float(plane.get("clock_rate") or 0) / 1000 or None,
    )
