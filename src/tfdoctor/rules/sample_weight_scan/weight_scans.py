"""The time in which Keras looks through sample weights one by one, by stack samples."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.phase_lines import ENOUGH
from tfdoctor.facts.phases.run_clock import whole_run
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import Phase, RunWork
from tfdoctor.terms.verdict import Location


@dataclass(frozen=True, slots=True)
class WeightScan:
    """The scans at one line of the user's, in ms of the run, and the phase in which most of its time lies."""

    at: Location | None
    ms: float
    samples: int
    phase: Phase = Phase.PREPARING


@dataclass(frozen=True, slots=True)
class WeightScans:
    """The lines with enough samples to be named, those that take most first."""

    lines: tuple[WeightScan, ...] = ()

    @classmethod
    def measure(cls, recording: Recording, phases: RunPhases) -> Self:
        """Add up the samples of the function of Keras that does it.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log, place = whole_run(recording), Places.of(recording)
        times: dict[Location | None, float] = defaultdict(float)
        samples: dict[Location | None, int] = defaultdict(int)
        scanning = {n: place(s.at) for n, s in log.stacks.items() if s.work is RunWork.WEIGHTS}
        for bucket in log.buckets:
            for number, at in scanning.items():
                times[at] += bucket.stacks.get(str(number), 0.0)
                samples[at] += bucket.samples.get(str(number), 0)
        sure = (at for at in times if samples[at] >= ENOUGH)
        lines = (WeightScan(at, times[at], samples[at], _phase(at, phases)) for at in sure)
        return cls(tuple(sorted(lines, key=lambda line: -line.ms)))


def _phase(at: Location | None, phases: RunPhases) -> Phase:
    """Return the phase that holds most of a line's time outside of training steps."""
    held = (line for line in phases.lines if line.at == at and line.phase is not Phase.STEPS)
    return max(held, key=lambda line: line.ms).phase if at else Phase.PREPARING
