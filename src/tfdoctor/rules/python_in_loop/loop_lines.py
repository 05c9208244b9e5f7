"""The user's lines in the body of the training loop that make no batch, with their time."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.host_lines import SlowCalls
from tfdoctor.facts.step_time.host_time import LoopBody
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import TimedLine, summed


@dataclass(frozen=True, slots=True)
class LoopLines:
    """The time of LoopBody within the marked step by its lines, the longest first; ``seen`` samples are in these.

    A line's time is its share of ``sample_count`` stack samples outside of training calls. Left out are lines that
    make the arguments of the training call, the line of the loop and of the call itself, calls of SlowCalls, and
    installed packages. ``body_ms`` is the time of them all.
    """

    lines: tuple[TimedLine, ...]
    seen: int
    sample_count: int
    body_ms: float

    @classmethod
    def measure(cls, samples: StackSamples, body: LoopBody, eager: EagerWork, slow: SlowCalls | None) -> Self:
        """Divide the body's time by the samples.

        Raises:
            Unavailable: the step itself runs operation by operation in the loop.
        """
        if eager.operations_ms > eager.functions_ms:
            raise Unavailable("the step itself runs operation by operation, so the loop has no separate work")
        each_ms = body.host_ms / max(1, samples.sample_count)
        calls = {samples.called_at, eager.at, *(slow.places if slow else ())}
        seen = summed(
            ((place.at, place.makes is False), place.seen)
            for place in samples.places
            if place.at is not None and not place.makes and place.at not in calls
        )
        lines = (
            TimedLine(at, count, count * each_ms, makes=False if aside else None)
            for (at, aside), count in seen.items()
        )
        ordered = tuple(sorted(lines, key=lambda line: -line.ms))
        return cls(ordered, sum(seen.values()), samples.sample_count, body.host_ms)

    @property
    def total_ms(self) -> float:
        """The time of all lines, in ms per training step."""
        return sum(line.ms for line in self.lines)
