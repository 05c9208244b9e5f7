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
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import EventType, Intervals, Line, Plane, Trace
from tfdoctor.trace.names import COLLECTIVE, COPY

NO_GPU = "the run used no GPU, so it has no kernels, copies or launch gaps"

KERNEL, COPY_WORK, COLLECTIVE_WORK = range(3)
"""Kinds of a GPU's work."""


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
    kinds = np.array([_kind(kind) for kind in plane.types], np.int8)
    lines = work_lines(plane)
    by_kind = [[_rows(line, kinds[line.kind] == kind) for line in lines] for kind in range(3)]
    spans = [
        Intervals.union(pair for rows in rows_of_lines for pair in rows.tolist())
        for rows_of_lines in by_kind
    ]
    return GpuActivity(
        plane.name,
        spans[KERNEL],
        spans[COPY_WORK],
        spans[COLLECTIVE_WORK],
        _starts(by_kind[KERNEL]),
        plane,
    )


def _kind(kind: EventType) -> int:
    if COPY.match(kind.name):
        return COPY_WORK
    return COLLECTIVE_WORK if COLLECTIVE.match(kind.name) else KERNEL


def _rows(line: Line, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (k, 2) starts and ends of the selected events of a line."""
    starts = line.start_ps[mask]
    return np.stack((starts, starts + line.duration_ps[mask]), axis=1)


def _starts(rows: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return (
        np.concatenate([line_rows[:, 0] for line_rows in rows]) if rows else np.zeros(0, np.int64)
    )
