"""How much of the accelerators' memory the run needed, by TensorFlow's allocators."""

import operator
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Trace
from tfdoctor.trace.stats import Value

EVENTS = ("MemoryAllocation", "MemoryDeallocation")

# Allocators of a device's memory; "gpu_host_bfc" and "cpu" are the host's. (Traces of TensorFlow 2.4 on Windows
# have lost the first letter.)
ON_DEVICE = re.compile(r"G?PU_\d+_bfc|gpu_async_\d+|TPU_?\d*.*")
PARTS = ("bytes_available", "bytes_allocated", "bytes_reserved")  # Statistics that sum to the allocator's limit


@dataclass(frozen=True, slots=True)
class Allocator:
    """One device's memory, in bytes."""

    name: str  # "GPU_0_bfc"
    limit: float  # what it may hand out
    used: float  # the most in use during the trace
    peak: float = 0.0  # the most since the program began, cuDNN's search for algorithms included

    @classmethod
    def of(cls, name: str, allocations: Sequence[Mapping[str, Value]]) -> Self:
        """Take the maxima of the allocator's own statistics over all allocations."""
        limits = [sum(float(stats[part]) for part in PARTS) for stats in allocations]
        free = [float(stats["bytes_available"]) for stats in allocations]
        used = max(map(operator.sub, limits, free))
        peak = max(float(stats.get("peak_bytes_in_use", 0)) for stats in allocations)
        return cls(name, max(1.0, *limits), used, peak)

    @property
    def share(self) -> float:
        """The highest share of the limit in use, 0 to 1."""
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The allocators in the trace, the fullest first.

    nvidia-smi does not show the need: TensorFlow reserves nearly all memory when it starts.
    """

    allocators: tuple[Allocator, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Read the allocators' own statistics."""
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        by_name: dict[str, list[Mapping[str, Value]]] = defaultdict(list)
        for line in trace.host_lines:
            for at in np.flatnonzero(is_named(line, EVENTS.__contains__)).tolist():
                stats = line.stats.of(at)
                name = str(stats.get("allocator_name") or "")
                if ON_DEVICE.fullmatch(name) and all(part in stats for part in PARTS):
                    by_name[name].append(stats)
        if not by_name:
            raise Unavailable(
                "the trace does not show the memory use of the device: it holds no allocation in the traced "
                "steps, or the profiler did not record them"
            )
        allocators = (Allocator.of(name, allocations) for name, allocations in by_name.items())
        return cls(tuple(sorted(allocators, key=lambda one: -one.share)))

    @property
    def fullest(self) -> Allocator:
        """The one nearest to its limit."""
        return self.allocators[0]
