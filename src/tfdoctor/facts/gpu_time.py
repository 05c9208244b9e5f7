"""How much of a typical step each GPU works, and at what."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.framework import Framework
from tfdoctor.facts.gpu_work import GpuWork, GpuWorks
from tfdoctor.facts.host_work import HostWork
from tfdoctor.facts.step import PS_PER_MS, host_lines
from tfdoctor.facts.trainer import waits_before
from tfdoctor.facts.typical import STEP, Typical
from tfdoctor.trace import Trace


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One GPU's round: milliseconds, each a union over its streams, and numbers of kernels."""

    name: str
    kernel_ms: float  # collectives and copies not among them
    copy_ms: float
    collective_ms: float
    busy_ms: float  # any of the three
    kernels: float
    traced_ms: float  # its kernels in the whole trace, steps or not


@dataclass(frozen=True, slots=True)
class GpuTime:
    """All GPUs of the host, the busiest first, and what the trainer waits for.

    ``unit`` says what a round is: a training step, or the trace where it has no steps.
    """

    unit: str
    round_ms: float
    gpus: tuple[GpuShare, ...]
    wait_ms: (
        float | None
    )  # of the trainer for its batches, hidden or not; None where it shows in no event
    exposed_wait_ms: float | None  # while the busiest GPU idles between its first and its last work
    wait_before_ms: float = (
        0.0  # of the wait, before the GPU's first work, where its own step begins
    )

    @classmethod
    def measure(
        cls,
        trace: Trace,
        works: GpuWorks,
        typical: Typical,
        host: HostWork,
        framework: Framework,
    ) -> Self:
        """Sum up every GPU's work.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        before = _before(trace, typical)
        unseen = framework.no_pipeline and not host.waits.spans
        return cls(
            typical.unit,
            typical.round_ms,
            tuple(_share(gpu, typical) for gpu in works.gpus),
            None if unseen else typical.ms(host.waits) + before,
            None if unseen else typical.ms(host.waits - works.busiest.busy),
            before,
        )

    @property
    def busiest(self) -> GpuShare:
        """The GPU whose steps are examined."""
        return self.gpus[0]

    @property
    def idle_ms(self) -> float:
        """The time in which no stream of the busiest GPU works."""
        return self.round_ms - self.busiest.busy_ms


def _before(trace: Trace, typical: Typical) -> float:
    """Return the wait for the first step's batch that its step leaves out, in ms per round."""
    if typical.unit != STEP:
        return 0.0
    return typical.scaled(waits_before(host_lines(trace), typical.stretches[0]).total)


def _share(gpu: GpuWork, typical: Typical) -> GpuShare:
    return GpuShare(
        gpu.name,
        typical.ms(gpu.kernels),
        typical.ms(gpu.copies),
        typical.ms(gpu.collectives),
        typical.ms(gpu.busy),
        int(typical.holds(gpu.launched_ps).sum()) / typical.rounds,
        gpu.kernels.total / PS_PER_MS,
    )
