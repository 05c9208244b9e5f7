"""What the stack shows in long steps of the whole run, once they have taken longer than usual."""

from collections import defaultdict
from dataclasses import dataclass
from operator import add
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.call_tree import sampled
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

# The calls that a step is in, at whose lines the stack of every step is.
TRAINING = (RunCall.FIT, RunCall.EPOCH, RunCall.STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLine:
    """A line of the user's in long steps, what it calls of a library and what that does; time in ms of the run.

    ``trains`` says that it is the call that trains, which each step is in: it names no cause.
    """

    at: Location | None
    ms: float
    samples: int
    calls: str = ""
    work: RunWork = RunWork.OTHER
    trains: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether the stack is often where a step waits for input: at the call that trains, or in the input."""
        return self.samples >= ENOUGH and (self.trains or self.work is RunWork.INPUT)

    @property
    def sure(self) -> bool:
        """Whether there are enough samples to name it as the cause."""
        return self.at is not None and self.samples >= ENOUGH and not self.trains


@dataclass(frozen=True, slots=True)
class RunLongLines:
    """The lines of long steps, those with most time first; their time begins at 1.5 times the usual step."""

    lines: tuple[LongLine, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the samples of each line.

        Raises:
            Unavailable: the run was not recorded, or no long step was sampled.
        """
        if recording.run is None:
            raise Unavailable("the run outside of the traced steps was not recorded")
        log, place = recording.run, Places.of(recording)
        times: dict[tuple[Location | None, str, RunWork], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for number, amounts in sampled(log.buckets).items():
            seen = log.stacks.get(number)
            if seen and seen.long:
                total = times[place(seen.at), seen.calls or "", seen.work]
                total[:] = map(add, total, amounts)
        training = {place(call.at) for call in log.calls.values() if call.call in TRAINING}
        lines = [
            LongLine(
                at=at, ms=ms, samples=int(samples), calls=calls, work=work,
                trains=at in training and work in (RunWork.OTHER, RunWork.MODEL),
            )
            for (at, calls, work), (ms, samples) in times.items()
            if ms
        ]  # fmt: skip
        if not lines:
            raise Unavailable("no step that takes long was sampled")
        return cls(tuple(sorted(lines, key=lambda line: -line.ms)))

    @property
    def ms(self) -> float:
        """The time of all lines."""
        return sum(line.ms for line in self.lines)

    @property
    def waiting(self) -> float:
        """The share of the time in lines where steps wait for input, 0 to 1: there no other line is the cause."""
        return sum(line.ms for line in self.lines if line.may_wait) / self.ms if self.ms else 0.0
