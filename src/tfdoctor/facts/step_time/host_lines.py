"""The user's lines that the host's time of each step goes to, by stack samples."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.sampled_steps import SampleTable
from tfdoctor.facts.step_time.timed_line import WITHIN, LineWork, Samples, TimedLine, lines_of, shown, work_of

PARTS = (Stage.HOST, Stage.BETWEEN)  # in which Python works


class HostLines(Record):
    """The lines of each part of the step in which Python works, the most frequent first.

    Samples count while neither the device nor a copy works and no batch is awaited, as Breakdown divides the
    step: a line that waits for the device is not the host's.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]]

    @classmethod
    def measure(cls, recording: Recording, table: SampleTable, breakdown: Breakdown) -> Self:
        """Sort each sample into the part of the step that it fell into.

        What a line does itself and its waits within a compiled function are two entries.
        """
        locate, parts = Places.of(recording), dict[Stage, tuple[TimedLine, ...]]()
        for stage in PARTS:
            divided = list[Samples]()
            for row in table.rows:
                here, work = row.part == stage, work_of(row.place)
                waits = here & row.amid & (work is LineWork.ENTERING)
                divided.append((row.place, LineWork.DISPATCHING, int(waits.sum())))
                divided.append((row.place, work if work in WITHIN else None, int((here & ~waits).sum())))
            parts[stage] = lines_of(divided, locate, breakdown[stage], shown)
        return cls(parts)

    @property
    def dispatching_ms(self) -> float:
        """The host's time between the operations of compiled functions, in ms per step."""
        lines = self.parts.get(Stage.HOST, ())
        return sum(line.ms for line in lines if line.work is LineWork.DISPATCHING)
