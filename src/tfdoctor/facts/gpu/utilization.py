"""How much of a steady step each GPU works, and on what."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.gpu.host_work import HostWork
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steady_steps import RoundUnit, SteadySteps
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.timeline.trainer import waits_before
from tfdoctor.trace import Trace


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One GPU's round: milliseconds, each a union over its streams, and numbers of kernels."""

    name: str
    kernel_ms: float  # without collectives and copies
    copy_ms: float
    collective_ms: float
    busy_ms: float  # any of the three
    kernels: float
    traced_ms: float  # its kernels in the whole trace, steps or not


@dataclass(frozen=True, slots=True)
class GpuUtilization:
    """All GPUs of the host, the busiest first, and how long the trainer waits for batches.

    ``unit`` says what a round is: a training step, or the trace where it has no steps. ``wait_ms`` is the
    whole wait, hidden or not; ``wait_before_ms`` the part before the GPU's first work, where its step
    begins. None is unknown.
    """

    unit: RoundUnit
    round_ms: float
    gpus: tuple[GpuShare, ...]
    wait_ms: float | None
    exposed_wait_ms: float | None  # while the busiest GPU idles between its first and its last work
    wait_before_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork, framework: Framework
    ) -> Self:
        """Sum up every GPU's work."""
        before = 0.0  # the first step's batch, before that step begins
        if steady.unit is RoundUnit.STEP:
            before = steady.scaled(waits_before(trace.host_lines, steady.stretches[0]).total)
        unseen = framework.no_pipeline and not host.waits
        return cls(
            steady.unit,
            steady.round_ms,
            tuple(
                GpuShare(
                    gpu.name,
                    steady.ms(gpu.kernels),
                    steady.ms(gpu.copies),
                    steady.ms(gpu.collectives),
                    steady.ms(gpu.busy),
                    int(steady.holds(gpu.kernel_starts_ps).sum()) / steady.rounds,
                    gpu.kernels.total / PS_PER_MS,
                )
                for gpu in activities.gpus
            ),
            None if unseen else steady.ms(host.waits) + before,
            None if unseen else steady.ms(host.waits - activities.busiest.busy),
            before,
        )

    @property
    def busiest(self) -> GpuShare:
        """The GPU whose steps are examined."""
        return self.gpus[0]
