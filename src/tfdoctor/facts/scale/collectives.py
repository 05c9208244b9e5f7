"""Collectives between GPUs: how long they take, and how much of that time is exposed."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.trace.names import COLLECTIVE

# The operation in the names of NCCL's and RCCL's kernels: ncclDevKernel_AllReduce_Sum_f32_RING_LL, …
KIND = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AllToAll|SendRecv)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Collectives:
    """The busiest GPU's kernels of NCCL or RCCL; ms and numbers per training step, or of the trace.

    A collective kernel runs while it waits for the other GPUs: ``ms`` includes that wait.
    """

    ms: float
    exposed_ms: float  # while no other kernel of the GPU runs
    kinds: tuple[tuple[str, float], ...]  # ("AllReduce", calls), the most frequent first

    @classmethod
    def measure(cls, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Separate the collectives' time by whether other kernels run meanwhile."""
        gpu, calls = activities.busiest, Counter[str]()
        of_type = np.array([COLLECTIVE.match(kind.name) is not None for kind in gpu.plane.types], bool)
        for line in work_lines(gpu.plane):
            kinds = line.kind[of_type[line.kind] & steady.holds(line.start_ps)]
            for kind, number in zip(*np.unique(kinds, return_counts=True), strict=True):
                named = KIND.search(gpu.plane.types[kind].name)
                calls[named[1] if named else "other"] += int(number)
        per_step = tuple((name, number / steady.rounds) for name, number in calls.most_common())
        return cls(steady.ms(gpu.collectives), steady.ms(gpu.collectives - gpu.kernels), per_step)
