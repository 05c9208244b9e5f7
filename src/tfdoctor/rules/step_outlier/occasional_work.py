"""Lines whose time is in long steps of the whole run: work that comes with some of the steps only."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines, RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.timed_line import LineWork
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import Phase, RunWork
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Recurrence, RunEffect

# What a line does that makes a step long by itself; rules for input, tracing and building report the rest.
OWN_WORK = (RunWork.OTHER, RunWork.MODEL, RunWork.SAVING)
# What a line does that a training step consists of.
OF_EACH_STEP = (LineWork.OPERATIONS, LineWork.READING, LineWork.CONVERTING, LineWork.ENTERING)
OFTEN = 0.05  # Share of a usual step from which a line belongs to every step: it does not come sometimes


@dataclass(frozen=True, slots=True)
class OccasionalWork:
    """The lines of long steps, with what they take beyond usual steps; ``share`` is of what recurs in the run."""

    lines: tuple[LongLine, ...]
    long: int  # steps of more than 1.5 times the usual one
    steps: int
    share: float
    every: int | None = None

    @classmethod
    def measure(
        cls,
        steps: RunSteps,
        seen: RunLongLines,
        phases: RunPhases,
        breakdown: Breakdown | None,
        usual: HostLines | None,
        cores: Cores | None,
    ) -> Self:
        """Divide what long steps take beyond usual ones as their samples are.

        Lines that take much of each traced step, such as an optimizer's update, are left out. Where other programs
        took the cores, any line of each step is: they may be what made it long.

        Raises:
            Unavailable: the run as a whole was not recorded, or no line is sampled often enough in long steps.
        """
        long = steps.long
        if not phases.whole or long is None or not seen.ms:
            raise Unavailable(phases.missing or "no step of the run took long")
        scale = long.beyond_ms / seen.ms  # samples begin at 1.5 times the usual step
        contended = cores is not None and cores.contended
        if contended and usual is None:
            raise Unavailable("other programs used the cores, which may be why steps took long")
        always = {
            line.at
            for part in (usual.parts.values() if usual and breakdown else ())
            for line in part
            if breakdown and line.ms >= OFTEN * breakdown.step_ms and not line.callback
            if contended or line.work in OF_EACH_STEP
        }
        lines = tuple(
            replace(line, ms=scale * line.ms)
            for line in seen.lines
            if line.sure and line.work in OWN_WORK and line.at not in always
        )
        if not lines:
            raise Unavailable("no line is seen often enough in long steps")
        share = sum(line.ms for line in lines) / phases.recurring_ms
        return cls(lines, long.count, steps.count, share, long.every)

    @property
    def ms(self) -> float:
        """The time of all lines in the run."""
        return sum(line.ms for line in self.lines)

    def effects(self) -> Iterator[RunEffect]:
        """Yield the time of each line, which is at least that of its work: samples begin after the usual step.

        How often it came is not known: other things make steps long as well.
        """
        for line in self.lines:
            yield RunEffect(
                phase=Phase.STEPS,
                of=ms(line.ms),
                subject=location(line.at),
                recurs=Recurrence.PER_CALL,
                times=0,
                bound=Bound.AT_MOST,
            )
