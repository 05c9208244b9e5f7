"""How fast the GPUs' clocks ran while they were busy, and why they were throttled."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuSample
from tfdoctor.terms.kinds import DeviceKind

BUSY_PCT = 50
"""Percent of the time with a kernel on the GPU from which it is busy: an idle GPU may lower its clock."""


@dataclass(frozen=True, slots=True)
class GpuClock:
    """One GPU while it is busy. ``reasons_known`` counts the samples with the reasons for throttling."""

    name: str
    index: int  # NVML's
    reasons_known: int
    reasons: Mapping[str, int]  # samples by reason; one sample may have several
    held_mhz: Mapping[str, float]  # mean clock of the multiprocessors by reason, where sampled
    top_mhz: float | None  # the GPU's highest clock
    mean_mhz: float | None = None  # of its multiprocessors, throttled or not

    def share(self, reason: str) -> float:
        """Return the share of the busy time that a reason throttled the clock."""
        return self.reasons.get(reason, 0) / self.reasons_known if self.reasons_known else 0.0

    def ratio(self, reason: str) -> float | None:
        """Return the throttled clock relative to the highest; None when one of them is unknown."""
        held = self.held_mhz.get(reason)
        return min(1.0, held / self.top_mhz) if held and self.top_mhz else None

    def left(self, reason: str) -> float:
        """Return what is left of the compute time at the highest clock, if only the clock limited it."""
        ratio = self.ratio(reason)
        return 1.0 if ratio is None else 1.0 - self.share(reason) * (1.0 - ratio)


@dataclass(frozen=True, slots=True)
class GpuClocks:
    """All GPUs that the run may use and that were busy, over the whole run."""

    gpus: tuple[GpuClock, ...]

    @classmethod
    def measure(cls, recording: Recording, device: Device, framework: Framework) -> Self:
        """Gather the samples of each GPU."""
        if device.kind != DeviceKind.GPU:
            raise Unavailable(f"only clocks of NVIDIA GPUs are sampled, and the run used a {device.kind}")
        rows: dict[int, list[GpuSample]] = defaultdict(list)
        for sample in recording.samples:
            for gpu in sample.gpu:
                if gpu.visible is not False and (gpu.gpu_pct or 0) >= BUSY_PCT:
                    rows[gpu.index].append(gpu)
        clocks = [_clock(index, samples, device) for index, samples in sorted(rows.items())]
        known = tuple(gpu for gpu in clocks if gpu.reasons_known)
        if not known:
            raise Unavailable(
                f"no clock of a busy NVIDIA GPU was sampled (this takes some seconds){framework.with_tfdoctor}"
            )
        return cls(known)


def _clock(index: int, rows: list[GpuSample], device: Device) -> GpuClock:
    explained = [(row.sm_mhz, row.throttle) for row in rows if row.throttle is not None]
    reasons = Counter(reason for _, held in explained for reason in dict.fromkeys(held))
    clocks = {reason: [mhz for mhz, held in explained if mhz and reason in held] for reason in reasons}
    plane = device.busiest.stats if device.busiest else {}
    sampled = [row.sm_mhz for row in rows if row.sm_mhz]
    top = max((float(row.sm_max_mhz or 0) for row in rows), default=0.0)
    return GpuClock(
        name=rows[-1].name or f"GPU {index}",
        index=index,
        reasons_known=len(explained),
        reasons=dict(reasons),
        held_mhz={reason: float(np.mean(mhz)) for reason, mhz in clocks.items() if mhz},
        top_mhz=top or float(plane.get("clock_rate") or 0) / 1000 or None,
        mean_mhz=float(np.mean(sampled)) if sampled else None,
    )
