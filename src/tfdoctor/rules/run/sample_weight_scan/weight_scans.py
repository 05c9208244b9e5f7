"""The time in which Keras looks through sample weights one by one, by stack samples."""

from tfdoctor.facts.kit import summed
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class WeightScans(Record):
    """The lines with enough samples to be named, those that take most first, each in its largest phase."""

    lines: tuple[RunLine, ...] = ()

    @classmethod
    def measure(cls, recording: Recording, phases: RunPhases) -> Self:
        """Add up the samples of the function of Keras that does it; training steps have no such time.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log, place = run_course.whole_run(recording), Places.of(recording)
        scans = [(place(one.at), ms, n) for one, ms, n in run_course.sampled(log) if one.work is RunWork.WEIGHTS]
        samples = summed((at, number) for at, _, number in scans)
        phase_of = {
            line.at: line.phase
            for line in sorted(phases.lines, key=lambda line: line.ms)  # the last has most
            if line.phase is not Phase.STEPS
        }
        phase_of[None] = Phase.PREPARING
        return cls(
            tuple(
                RunLine(phase=phase_of[at], at=at, ms=ms, samples=round(samples[at]))
                for at, ms in summed((at, ms) for at, ms, _ in scans).items()
                if samples[at] >= ENOUGH
            )
        )
