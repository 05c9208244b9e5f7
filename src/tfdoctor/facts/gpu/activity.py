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
from tfdoctor.trace.intervals import pairs_of
from tfdoctor.trace.names import COLLECTIVE, COPY

NEVER = np.iinfo(np.int64).max  # The launch time of work whose launching call is not in the trace


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

    @classmethod
    def of(cls, plane: Plane) -> Self:
        """Sort one GPU's events into kernels, copies and collectives."""
        kinds: tuple[list[Intervals], ...] = ([], [], [])
        starts = [np.zeros(0, np.int64)]
        for line in work_lines(plane):
            copy = is_named(line, COPY.match)
            collective = is_named(line, COLLECTIVE.match) & ~copy
            kernel = ~(copy | collective)
            for spans, mask in zip(kinds, (kernel, copy, collective), strict=True):
                spans.append(spans_of(line, mask))
            starts.append(line.start_ps[kernel])
        kernels, copies, collectives = map(Intervals.any_of, kinds)
        return cls(plane.name, kernels, copies, collectives, np.concatenate(starts), plane)


@dataclass(frozen=True, slots=True, eq=False)
class GpuActivities:
    """All visible GPUs, the busiest first."""

    gpus: tuple[GpuActivity, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Sort the events of every GPU's streams."""
        if device.kind == DeviceKind.GPU and device.missing:
            raise Unavailable(str(device.missing))
        if device.kind != DeviceKind.GPU:
            raise Unavailable("the run used no GPU, so it has no kernels, copies or launch gaps")
        gpus = map(GpuActivity.of, trace.devices(DeviceKind.GPU))
        return cls(tuple(sorted(gpus, key=lambda gpu: -gpu.busy.total)))

    @property
    def busiest(self) -> GpuActivity:
        """The GPU whose steps are examined."""
        return self.gpus[0]


def launches(trace: Trace, plane: Plane) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n,) when a GPU's work started, in order, and (n,) when the host's call that launched it ended.

    Call and work have the same correlation id.
    """
    ended: dict[int, int] = {}
    for line in trace.host_lines:
        events, ids = line.stats.ids("correlation_id")
        ends = line.start_ps[events] + line.duration_ps[events]
        ended |= dict(zip(ids.tolist(), ends.tolist(), strict=True))
    rows: list[tuple[int, int]] = []
    for line in work_lines(plane):
        calls = line.stats.ids_of("correlation_id", np.arange(len(line))).tolist()
        rows += zip(line.start_ps.tolist(), (ended.get(call, NEVER) for call in calls), strict=True)
    starts, launched = pairs_of(sorted(rows)).T
    return starts, launched
