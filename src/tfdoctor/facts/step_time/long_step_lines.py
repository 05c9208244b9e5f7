"""The user's lines that long steps spend Python's time in, by stack samples."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.sampled_steps import sampling_began, times_of
from tfdoctor.facts.step_time.slow_calls import SlowCall, slow_call
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SeenPlace
from tfdoctor.trace import Trace
from tfdoctor.verdict import Location, Stage


@dataclass(frozen=True, slots=True)
class LongStepLine:
    """A line in the samples of long steps, with how many show it.

    ``calls`` is the full name of the function that it calls most often ("keras...Trainer.predict"); "" is the line
    itself. ``callback`` is the method of a Keras callback that the line is in.
    """

    at: Location | None
    seen: int
    calls: str = ""
    callback: str = ""

    @property
    def call(self) -> SlowCall | None:
        """The kind of the call, where it is one that costs much."""
        return slow_call(self.calls)


@dataclass(frozen=True, slots=True)
class LongStepLines:
    """The lines of the long steps, most samples first, in the training calls (HOST) and between them (BETWEEN).

    Where samples have no time (``timed`` is False), the lines of callbacks between all calls stand for those of
    long steps.
    """

    parts: Mapping[Stage, tuple[LongStepLine, ...]] = field(default_factory=dict)
    timed: bool = True

    @classmethod
    def measure(
        cls, recording: Recording, trace: Trace, steps: Steps, framework: Framework
    ) -> Self:
        """Sort the samples in long steps into those within and between the training calls.

        Raises:
            Unavailable: the stack was not sampled.
        """
        record = recording.program.python if recording.program else None
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        locate = Places.of(recording)
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            callbacks = {p: p.seen for p in record.places if p.callback and not p.inside}
            return cls({Stage.BETWEEN: _lines(callbacks, locate)}, timed=False)
        counts = _in_long_steps(record.places, began_ps, steps)
        return cls({stage: _lines(seen, locate) for stage, seen in counts.items()})

    def of(self, part: str) -> tuple[LongStepLine, ...]:
        """Return the lines of a part of the long steps; none for other parts than Python's."""
        return next((lines for stage, lines in self.parts.items() if stage == part), ())

    @property
    def slow_calls(self) -> tuple[LongStepLine, ...]:
        """The lines between the training calls that make a costly call."""
        return tuple(line for line in self.of(Stage.BETWEEN) if line.call)


def _in_long_steps(
    places: Iterable[SeenPlace], began_ps: int, steps: Steps
) -> dict[Stage, Counter[SeenPlace]]:
    """Count the samples in outliers, before and after the training call has returned."""
    starts = [step.start_ps for step in steps.steps]
    counts: dict[Stage, Counter[SeenPlace]] = {Stage.HOST: Counter(), Stage.BETWEEN: Counter()}
    for place in places:
        for time in times_of(place, began_ps).tolist():
            at = bisect_right(starts, time) - 1
            if at < 0 or steps.steady[at] or time >= steps.steps[at].end_ps:
                continue
            after = time >= steps.steps[at].call_end_ps
            counts[Stage.BETWEEN if after else Stage.HOST][place] += 1
    return counts


def _lines(seen: Mapping[SeenPlace, int], locate: Places) -> tuple[LongStepLine, ...]:
    """Return one entry for each line, with what it calls most often."""
    groups: dict[tuple[object, str], Counter[SeenPlace]] = {}
    for place, number in seen.items():
        groups.setdefault((place.at, place.callback), Counter())[place] += number
    lines = [_line(group, locate) for group in groups.values()]
    return tuple(sorted(lines, key=lambda line: -line.seen))


def _line(group: Counter[SeenPlace], locate: Places) -> LongStepLine:
    calls: Counter[str] = Counter()
    for place, number in group.items():
        calls[place.calls] += number
    first = next(iter(group))
    return LongStepLine(locate(first.at), group.total(), calls.most_common(1)[0][0], first.callback)
