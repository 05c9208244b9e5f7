"""What the stack shows in long steps of the whole run, once they have taken longer than usual."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

TRAINING = (RunCall.FIT, RunCall.EPOCH, RunCall.STEP)
"""The calls that a step is in, at whose lines the stack of every step is."""


SeenLine = tuple[Location | None, str, RunWork]
"""A line of the user's, what it calls of a library, and what that does."""


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
        long = {number: seen for number, seen in recording.run.stacks.items() if seen.long}
        times: dict[SeenLine, float] = defaultdict(float)
        samples: dict[SeenLine, int] = defaultdict(int)
        locate = Places.of(recording)
        made = recording.run.calls.values()
        training = {locate(call.at) for call in made if call.call in TRAINING}
        for bucket in recording.run.buckets:
            for number, seen in long.items():
                line = (locate(seen.at), seen.calls or "", seen.work)
                times[line] += bucket.stacks.get(str(number), 0.0)
                samples[line] += bucket.samples.get(str(number), 0)
        lines = []
        for (at, calls, work), ms in times.items():
            trains = at in training and work in (RunWork.OTHER, RunWork.MODEL)
            number = samples[at, calls, work]
            lines.append(LongLine(at=at, ms=ms, samples=number, calls=calls, work=work, trains=trains))
        ordered = sorted((line for line in lines if line.ms), key=lambda line: -line.ms)
        if not ordered:
            raise Unavailable("no step that takes long was sampled")
        return cls(tuple(ordered))

    @property
    def ms(self) -> float:
        """The time of all lines."""
        return sum(line.ms for line in self.lines)

    @property
    def waiting(self) -> float:
        """The share of the time in lines where steps wait for input, 0 to 1: there no other line is the cause."""
        return sum(line.ms for line in self.lines if line.may_wait) / self.ms if self.ms else 0.0
