"""How much the input slows the compute of a CPU run, because both share the cores."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds, number
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage

# Share of the compute that is left in any case where it no longer shares the cores: the scheduler gives as many
# threads of the input no more than the compute's.
SHARED = 0.5


@dataclass(frozen=True, slots=True)
class CpuContention:
    """Whether the input's threads keep the step's own from the cores; times in ms per step."""

    crowded: bool | None  # None is unknown
    cores: float = 1.0  # usable by the run
    compute_ms: float = 0.0
    beside: float = 1.0  # the share of the step in which the trainer does not wait for input
    others: float = 0.0  # cores that other programs used while none was free; 0.0 where one was

    @classmethod
    def measure(cls, device: Device, cores: Cores | None, breakdown: Breakdown) -> Self:
        """Read the sampled cores; an accelerator computes without them."""
        others = cores.others if cores and cores.contended else 0.0
        if device.kind != DeviceKind.CPU:
            return cls(crowded=False, others=others)
        if cores is None or not cores.sampled:
            return cls(crowded=None)
        return cls(
            crowded=cores.crowded,
            cores=cores.usable,
            compute_ms=breakdown["device"],
            beside=1.0 - breakdown["input"] / breakdown.step_ms,
            others=others,
        )

    @property
    def disturbance(self) -> str:
        """What other programs did to the run, as a clause; "" where a core was free for it."""
        if not self.others:
            return ""
        return f"other programs used {number(self.others)} cores while none was free; record on an idle machine"

    def taken_ms(self, work_ms: float) -> float:
        """Return by how much at most this much of the input's work slows the compute, in ms.

        A ceiling, because it assumes that the compute can use all cores that the input leaves free.
        """
        if not self.crowded:
            return 0.0
        return min(work_ms * self.beside / self.cores, self.compute_ms)

    def crowds_out(self, work_ms: float, step_ms: float, least: float) -> bool:
        """Whether this much of the input's work slows the compute by at least a share of the step, 0 to 1.

        Then less of this work may shorten a step that never waits for its input.
        """
        return self.taken_ms(work_ms) >= least * step_ms > 0.0

    def relief(self, work_ms: float) -> tuple[Effect, ...]:
        """Return the compute's gain when this much of the input's work is gone: a ceiling."""
        taken = self.taken_ms(work_ms)
        if not taken:
            return ()
        left = max(SHARED, 1.0 - taken / self.compute_ms)
        why = f"it shares {number(self.cores)} cores with {milliseconds(work_ms)} of this input work per step"
        return (Effect(Stage.DEVICE, left, of=ms(self.compute_ms), bound=Bound.AT_MOST, why=why),)
