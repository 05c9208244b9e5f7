"""How many cores the run kept busy, and how many were free: input and compute share them on a CPU."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.samples import BUSY_CORES, Samples
from tfdoctor.facts.machine.threads import Threads
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind

# Share of busy cores from which threads wait for each other, as in starved-cpu; below 1 because the samples of a
# short window also cover the time around it.
CROWDED = 0.75


@dataclass(frozen=True, slots=True)
class Cores:
    """Means over the traced steps, in logical CPUs.

    ``sampled`` says that the operating system counted; otherwise ``busy`` is what the trace shows of
    the run's threads, a lower bound.
    """

    usable: float  # by the run
    busy: float  # with the run's work
    others: float = 0.0  # busy with other programs' work
    sampled: bool = True

    @classmethod
    def measure(
        cls, hardware: Hardware, samples: Samples | None, threads: Threads | Unavailable, framework: Framework
    ) -> Self:
        """Take the samples, else count the busy threads in the trace."""
        if not hardware.cores:
            how = framework.with_tfdoctor
            raise Unavailable(f"the recording does not say how many cores the run may use{how}")
        if samples is not None and samples.run_cores is not None:
            return cls(hardware.cores, samples.run_cores, samples.other_cores or 0.0)
        if isinstance(threads, Unavailable):
            raise threads
        return cls(hardware.cores, min(threads.at_work, hardware.cores), sampled=False)

    @property
    def certain(self) -> bool:
        """Whether free cores were sampled, and no other program competes for them."""
        return self.sampled and self.others <= BUSY_CORES

    @property
    def contended(self) -> bool:
        """Whether other programs took cores while there were none to spare."""
        return self.sampled and self.others > BUSY_CORES and self.crowded

    @property
    def crowded(self) -> bool:
        """Whether so many cores are busy, with other programs' work too, that threads wait for each other."""
        return self.busy + self.others >= CROWDED * self.usable

    @property
    def free(self) -> float:
        """The cores that the run did not use, those of other programs included, which more threads would share."""
        return max(0.0, self.usable - self.busy)

    def for_stage(self, kind: DeviceKind) -> float:
        """Return how many cores one thread of the input could spread its work over, the one it has included.

        On a CPU run, compute and input take turns or share all cores, which the step model accounts for.
        """
        return max(1.0, self.usable if kind == DeviceKind.CPU else 1.0 + self.free)

    @property
    def share(self) -> float:
        """The share of its usable cores that the run kept busy, 0 to 1."""
        return min(1.0, self.busy / self.usable)
