"""When each GPU ran kernels, copies and collectives: unions over its streams.

A copy is not a kernel, though xprof counts it as one and ROCm records it as one. Clearing memory counts
as a copy, as in Breakdown.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.timeline.trainer import is_named, spans_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Intervals, Plane, Trace
from tfdoctor.trace.names import COLLECTIVE, COPY

NO_GPU = "the run used no GPU, so it has no kernels, copies or launch gaps"


@dataclass(frozen=True, slots=True, eq=False)
class GpuActivity:
    """One GPU; kernels, copies and collectives may overlap each other, on streams of their own."""

    name: str  # "/device:GPU:0"
    kernels: Intervals
    copies: Intervals
    collectives: Intervals
    kernel_starts_ps: NDArray[np.int64]  # (n,) without collectives
    plane: Plane

    @property
    def busy(self) -> Intervals:
        """When any of its streams worked."""
        return self.kernels | self.copies | self.collectives


@dataclass(frozen=True, slots=True, eq=False)
class GpuActivities:
    """All visible GPUs, the busiest first."""

    gpus: tuple[GpuActivity, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Sort the events of every GPU's streams.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        if device.kind == DeviceKind.GPU and device.missing:
            raise Unavailable(str(device.missing))
        if device.kind != DeviceKind.GPU:
            raise Unavailable(NO_GPU)
        activities = [activity_of(plane) for plane in trace.devices(DeviceKind.GPU)]
        return cls(tuple(sorted(activities, key=lambda gpu: -gpu.busy.total)))

    @property
    def busiest(self) -> GpuActivity:
        """The GPU whose steps are examined."""
        return self.gpus[0]


def activity_of(plane: Plane) -> GpuActivity:
    """Sort one GPU's events into kernels, copies and collectives."""
    kernels, copies, collectives = [], [], []
    kernel_starts = [np.zeros(0, np.int64)]
    for line in work_lines(plane):
        copy = is_named(line, COPY.match)
        collective = is_named(line, COLLECTIVE.match) & ~copy
        kernel = ~(copy | collective)
        copies.append(spans_of(line, copy))
        collectives.append(spans_of(line, collective))
        kernels.append(spans_of(line, kernel))
        kernel_starts.append(line.start_ps[kernel])
    return GpuActivity(
        plane.name,
        Intervals.any_of(kernels),
        Intervals.any_of(copies),
        Intervals.any_of(collectives),
        np.concatenate(kernel_starts),
        plane,
    )
