"""How fast the GPUs' clocks ran while they were busy, and why they were throttled."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.samples import BUSY_PCT, of_gpus
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.samples import GpuSample
from tfdoctor.terms.kinds import DeviceKind


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

    @classmethod
    def of(cls, index: int, rows: list[GpuSample], device: Device) -> Self:
        """Count the reasons in the samples of one GPU."""
        explained = [(row.sm_mhz, row.throttle) for row in rows if row.throttle is not None]
        reasons = Counter(reason for _, held in explained for reason in dict.fromkeys(held))
        clocks = {reason: [mhz for mhz, held in explained if mhz and reason in held] for reason in reasons}
        plane = device.busiest.stats if device.busiest else {}
        sampled = [row.sm_mhz for row in rows if row.sm_mhz]
        top = max((float(row.sm_max_mhz or 0) for row in rows), default=0.0)
        return cls(
            name=rows[-1].name or f"GPU {index}",
            index=index,
            reasons_known=len(explained),
            reasons=dict(reasons),
            held_mhz={reason: float(np.mean(mhz)) for reason, mhz in clocks.items() if mhz},
            top_mhz=top or float(plane.get("clock_rate") or 0) / 1000 or None,
            mean_mhz=float(np.mean(sampled)) if sampled else None,
        )

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
        rows = of_gpus(recording, BUSY_PCT)
        clocks = [GpuClock.of(index, samples, device) for index, samples in rows.items()]
        known = tuple(gpu for gpu in clocks if gpu.reasons_known)
        if not known:
            raise Unavailable(
                f"no clock of a busy NVIDIA GPU was sampled (this takes some seconds){framework.with_tfdoctor}"
            )
        return cls(known)
