"""The user's lines that the host's time of a step goes to, by stack samples on the trace's clock."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.sampled_steps import SampleRow, SampleTable
from tfdoctor.facts.step_time.timed_line import WITHIN, LineWork, TimedLine, shown, work_of
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SeenPlace
from tfdoctor.terms.verdict import Location, Stage

Group = dict[SeenPlace, int]  # The places of a line, with how many of their samples count


@dataclass(frozen=True, slots=True)
class HostLines:
    """The lines of each part of the step in which Python works, the most frequent first.

    Samples count while neither the device nor a copy works and no batch is awaited, as Breakdown divides the
    step: a line that waits for the device is not the host's. ``around`` are the lines that call the function in
    which the training call is: they hold the training, so that the lines of that function are not theirs.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]]
    around: frozenset[Location] = frozenset()

    @classmethod
    def measure(cls, recording: Recording, table: SampleTable, breakdown: Breakdown) -> Self:
        """Sort each sample into the part of the step that it fell into."""
        locate, rows = Places.of(recording), table.steady_rows
        python = recording.program.python if recording.program else None
        calls = {fed.at for fed in (python.fed, python.feeds) if fed} if python else set()
        if recording.manifest:
            calls.add(recording.manifest.steps.at)
        places = (row.place for row in table.rows)
        seen = (*places, *(recording.run.stacks.values() if recording.run else ()))
        around = (locate(one.caller) for one in seen if one.at and one.at in calls)
        return cls(
            {stage: _lines(rows, stage, locate, breakdown[stage]) for stage in (Stage.HOST, Stage.BETWEEN)},
            frozenset(filter(None, around)),
        )

    def own(self, stage: Stage) -> tuple[TimedLine, ...]:
        """Return the lines of a part that work themselves, without those that wait for a function's operations."""
        lines = self.parts.get(stage, ())
        return tuple(line for line in lines if line.work is not LineWork.DISPATCHING)

    @property
    def dispatching_ms(self) -> float:
        """The host's time between the operations of compiled functions, in ms per step."""
        lines = self.parts.get(Stage.HOST, ())
        return sum(line.ms for line in lines if line.work is LineWork.DISPATCHING)


def _lines(rows: Sequence[SampleRow], stage: Stage, locate: Places, part_ms: float) -> tuple[TimedLine, ...]:
    """Divide the time of a part among its lines by their samples, most first.

    What a line does itself and its waits within a compiled function are two entries.
    """
    groups: dict[tuple[object, ...], Group] = defaultdict(dict)
    for row in rows:
        place, work = row.place, work_of(row.place)
        here = row.part == stage
        waits = here & row.amid if work is LineWork.ENTERING else np.zeros_like(here)
        for kind, mask in ((LineWork.DISPATCHING, waits), (work, here & ~waits)):
            if number := int(mask.sum()):
                groups[place.at, place.callback, kind if kind in WITHIN else None][place] = number
    each_ms = part_ms / max(1, sum(sum(group.values()) for group in groups.values()))
    lines = [
        TimedLine.of(group, locate, each_ms, named=shown, work=kind if isinstance(kind, LineWork) else None)
        for (*_, kind), group in groups.items()
    ]
    return tuple(sorted(lines, key=lambda line: -line.seen))


PARTS = (Stage.HOST, Stage.BETWEEN)


@dataclass(frozen=True, slots=True)
class LongStepLines:
    """The lines of the long steps, most samples first, in the training calls (HOST) and between them (BETWEEN).

    Where samples have no time (``timed`` is False), the lines of callbacks between all calls stand for those of
    long steps. ``callbacks`` are those of all steps, each with the part of the step that it runs in: one that runs
    in every fifth step need not make it an outlier.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]] = field(default_factory=dict)
    timed: bool = True
    callbacks: tuple[tuple[Stage, TimedLine], ...] = ()

    @classmethod
    def measure(cls, recording: Recording, table: SampleTable | None, steps: Steps, framework: Framework) -> Self:
        """Sort the samples in long steps into those within and between the training calls.

        Raises:
            Unavailable: the stack was not sampled.
        """
        record = recording.program.python if recording.program else None
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        locate = Places.of(recording)
        if table is None:
            untimed = {place: place.seen for place in record.places if place.callback and not place.inside}
            return cls({Stage.BETWEEN: _long_lines(untimed, locate)}, timed=False)
        rows = [row.only(row.step < len(steps.steps)) for row in table.rows]
        long = {stage: {row.place: _within(row, stage)[~row.steady].sum() for row in rows} for stage in PARTS}
        callbacks = tuple(sorted(_callbacks(rows, locate), key=lambda one: -one[1].seen))
        return cls({stage: _long_lines(seen, locate) for stage, seen in long.items()}, callbacks=callbacks)

    def of(self, part: str) -> tuple[TimedLine, ...]:
        """Return the lines of a part of the long steps; none for other parts than Python's."""
        return next((lines for stage, lines in self.parts.items() if stage == part), ())

    @property
    def slow_calls(self) -> tuple[TimedLine, ...]:
        """The lines between the training calls that make a costly call."""
        return tuple(line for line in self.of(Stage.BETWEEN) if line.call)


def _within(row: SampleRow, stage: Stage) -> NDArray[np.bool_]:
    return row.after if stage is Stage.BETWEEN else ~row.after


def _callbacks(rows: Sequence[SampleRow], locate: Places) -> Iterator[tuple[Stage, TimedLine]]:
    """Yield the callbacks with their steps; in the call, samples while something else works wait for that."""
    for name in dict.fromkeys(row.place.callback for row in rows if row.place.callback):
        for stage in PARTS:
            own = (row.only(row.after | (row.part == Stage.HOST)) for row in rows if row.place.callback == name)
            steps = {row.place: row.step[_within(row, stage)] for row in own}
            seen = {place: len(of) for place, of in steps.items() if len(of)}
            if seen:
                shown = frozenset(int(step) for of in steps.values() for step in of)
                yield stage, replace(TimedLine.of(seen, locate), steps=shown)


def _long_lines(seen: Mapping[SeenPlace, int], locate: Places) -> tuple[TimedLine, ...]:
    """Return one entry for each line, with what it calls most often."""
    groups: dict[tuple[object, str], dict[SeenPlace, int]] = defaultdict(dict)
    for place, number in seen.items():
        if number:
            groups[place.at, place.callback][place] = int(number)
    lines = [TimedLine.of(group, locate) for group in groups.values()]
    return tuple(sorted(lines, key=lambda line: -line.seen))
