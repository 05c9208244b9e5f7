"""The user's lines that the host's time of a step goes to, by stack samples on the trace's clock."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.line_work import WITHIN, LineWork, shown, work_of
from tfdoctor.facts.step_time.sampled_steps import SampleRow, SampleTable
from tfdoctor.facts.step_time.timed_line import TimedLine
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
