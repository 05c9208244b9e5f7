"""How much of the accelerators' memory the run needed, as TensorFlow's allocators say."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.kinds import DeviceKind
from tfdoctor.trace import Trace
from tfdoctor.trace.model import Value

EVENTS = ("MemoryAllocation", "MemoryDeallocation")

ON_DEVICE = re.compile(r"G?PU_\d+_bfc|gpu_async_\d+|TPU_?\d*.*")
"""Allocators of a device's memory; "gpu_host_bfc" and "cpu" are the host's. (Traces of TensorFlow 2.4 on
Windows have lost the first letter.)"""

PARTS = ("bytes_available", "bytes_allocated", "bytes_reserved")
"""They sum to what the allocator may hand out."""


@dataclass(frozen=True, slots=True)
class Allocator:
    """One device's memory, in bytes."""

    name: str  # "GPU_0_bfc"
    limit: float  # what it may hand out
    used: float  # the most that was in use while it was traced
    peak: float = 0.0  # the most since the program began: cuDNN's search for algorithms is in it

    @property
    def share(self) -> float:
        """How full it was at most, from 0 to 1."""
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The allocators that were seen, the fullest first.

    What nvidia-smi calls used says nothing of need: TensorFlow takes nearly all memory when it starts.
    """

    allocators: tuple[Allocator, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Read the allocators' own figures.

        Raises:
            Unavailable: the run used no accelerator, or its allocators said nothing.
        """
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        by_name: dict[str, list[Allocator]] = defaultdict(list)
        for stats in _told(trace):
            name = str(stats.get("allocator_name") or "")
            if ON_DEVICE.fullmatch(name) and all(part in stats for part in PARTS):
                by_name[name].append(_allocator(name, stats))
        allocators = [_most(views) for views in by_name.values()]
        if not allocators:
            raise Unavailable(
                "the trace does not say how much of the device's memory was in use (no allocation in the "
                "traced steps, or a profiler that does not record them)"
            )
        return cls(tuple(sorted(allocators, key=lambda allocator: -allocator.share)))

    @property
    def fullest(self) -> Allocator:
        """The one nearest to its limit."""
        return self.allocators[0]


def _allocator(name: str, stats: Mapping[str, Value]) -> Allocator:
    """Return one allocation's view of it."""
    limit, free = sum(float(stats[part]) for part in PARTS), float(stats["bytes_available"])
    return Allocator(name, max(limit, 1.0), limit - free, float(stats.get("peak_bytes_in_use", 0)))


def _most(views: list[Allocator]) -> Allocator:
    """Return the most of all views."""
    return Allocator(
        views[0].name,
        max(view.limit for view in views),
        max(view.used for view in views),
        max(view.peak for view in views),
    )


def _told(trace: Trace) -> Iterator[Mapping[str, Value]]:
    """Yield the stats of each allocation on the host's threads."""
    for line in trace.host_lines:
        kinds = {at for at, kind in enumerate(line.types) if kind.name in EVENTS}
        for at, stats in line.stats.items() if kinds else ():
            if int(line.kind[at]) in kinds:
                yield stats
