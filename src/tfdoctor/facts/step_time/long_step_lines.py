"""The user's lines that long steps spend Python's time in, by stack samples."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.host_lines import HostTime, summed
from tfdoctor.facts.step_time.sampled_steps import sampling_began, times_of
from tfdoctor.facts.step_time.slow_calls import SlowCall, slow_call
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SeenPlace
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Trace


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
class CallbackSteps:
    """A callback's samples in all traced steps: its line, the part of the step that it runs in, and the steps."""

    line: LongStepLine
    part: Stage
    steps: frozenset[int]  # positions among the traced steps


@dataclass(frozen=True, slots=True)
class LongStepLines:
    """The lines of the long steps, most samples first, in the training calls (HOST) and between them (BETWEEN).

    Where samples have no time (``timed`` is False), the lines of callbacks between all calls stand for those of
    long steps. ``callbacks`` are those of all steps: one that runs in every fifth step need not make it an outlier.
    """

    parts: Mapping[Stage, tuple[LongStepLine, ...]] = field(default_factory=dict)
    timed: bool = True
    callbacks: tuple[CallbackSteps, ...] = ()

    @classmethod
    def measure(
        cls, recording: Recording, trace: Trace, steps: Steps, activity: Activity, framework: Framework
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
        samples = tuple(_samples(record.places, began_ps, steps, activity))
        long = [one for one in samples if not steps.steady[one.step]]
        return cls(
            {stage: _lines(_counted(long, stage), locate) for stage in PARTS},
            callbacks=tuple(_callbacks(samples, locate)),
        )

    def of(self, part: str) -> tuple[LongStepLine, ...]:
        """Return the lines of a part of the long steps; none for other parts than Python's."""
        return next((lines for stage, lines in self.parts.items() if stage == part), ())

    @property
    def slow_calls(self) -> tuple[LongStepLine, ...]:
        """The lines between the training calls that make a costly call."""
        return tuple(line for line in self.of(Stage.BETWEEN) if line.call)


PARTS = (Stage.HOST, Stage.BETWEEN)


class PlacedSample(NamedTuple):
    """A stack sample in a traced step: its place, the position of the step, and the part that it lies in."""

    place: SeenPlace
    step: int
    part: Stage
    waits: bool = False  # for the device, within the training call


def _samples(
    places: Iterable[SeenPlace], began_ps: int, steps: Steps, activity: Activity
) -> Iterator[PlacedSample]:
    """Yield the samples before and after the training call has returned.

    Those within it while something else works wait for that.
    """
    every = replace(steps, steady=(True,) * len(steps.steps), stalled=())
    time, starts = HostTime.of(every, activity), [step.start_ps for step in steps.steps]
    for place in places:
        for when in times_of(place, began_ps).tolist():
            at = bisect_right(starts, when) - 1
            if at < 0 or when >= steps.steps[at].end_ps:
                continue
            if when >= steps.steps[at].call_end_ps:
                yield PlacedSample(place, at, Stage.BETWEEN)
            else:
                waits = time.part(when, {}) is not Stage.HOST
                yield PlacedSample(place, at, Stage.HOST, waits)


def _counted(samples: Iterable[PlacedSample], part: Stage) -> Counter[SeenPlace]:
    return Counter(one.place for one in samples if one.part is part)


def _callbacks(samples: Iterable[PlacedSample], locate: Places) -> Iterator[CallbackSteps]:
    """Yield the callbacks with their steps, most samples first."""
    groups: dict[tuple[str, Stage], list[PlacedSample]] = {}
    for one in samples:
        if one.place.callback and not one.waits:
            groups.setdefault((one.place.callback, one.part), []).append(one)
    for (_, part), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        line = _line(_counted(group, part), locate)
        yield CallbackSteps(line, part, frozenset(one.step for one in group))


def _lines(seen: Mapping[SeenPlace, int], locate: Places) -> tuple[LongStepLine, ...]:
    """Return one entry for each line, with what it calls most often."""
    groups: dict[tuple[object, str], Counter[SeenPlace]] = {}
    for place, number in seen.items():
        groups.setdefault((place.at, place.callback), Counter())[place] += number
    lines = [_line(group, locate) for group in groups.values()]
    return tuple(sorted(lines, key=lambda line: -line.seen))


def _line(group: Counter[SeenPlace], locate: Places) -> LongStepLine:
    calls = summed((place.calls, number) for place, number in group.items())
    first = next(iter(group))
    return LongStepLine(locate(first.at), group.total(), next(iter(calls)), first.callback)
