"""The time in which Keras looks through sample weights one by one, by stack samples."""

from typing import NamedTuple

from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class WeightScan(NamedTuple):
    """The scans at one line of the user's, in ms of the run, and the phase in which most of its time lies."""

    at: Location | None
    ms: float
    samples: int
    phase: Phase = Phase.PREPARING


class WeightScans(Record):
    """The lines with enough samples to be named, those that take most first."""

    lines: tuple[WeightScan, ...] = ()

    @classmethod
    def measure(cls, recording: Recording, phases: RunPhases) -> Self:
        """Add up the samples of the function of Keras that does it; training steps have no such time.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log, place = run_course.whole_run(recording), Places.of(recording)
        times: dict[Location | None, float] = defaultdict(float)
        samples: dict[Location | None, int] = defaultdict(int)
        for number, stack in log.stacks.items():
            if stack.work is RunWork.WEIGHTS:
                at, key = place(stack.at), str(number)
                times[at] += sum(bucket.stacks.get(key, 0.0) for bucket in log.buckets)
                samples[at] += sum(bucket.samples.get(key, 0) for bucket in log.buckets)
        phase_of = {
            line.at: line.phase
            for line in sorted(phases.lines, key=lambda line: line.ms)  # the last has most
            if line.phase is not Phase.STEPS
        }
        phase_of[None] = Phase.PREPARING
        lines = (WeightScan(at, ms, samples[at], phase_of[at]) for at, ms in times.items() if samples[at] >= ENOUGH)
        return cls(tuple(sorted(lines, key=lambda line: -line.ms)))
