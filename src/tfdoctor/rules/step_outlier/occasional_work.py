"""Lines whose time is in long steps of the whole run: work that comes with some of the steps only."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.phases.run_long_lines import LongLine, RunLongLines
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines, LineWork
from tfdoctor.terms.humanize import counted, duration, location, percent
from tfdoctor.terms.kinds import Phase, RunWork
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Concern, Finding, Location, Measure, Recurrence, Remedy, RunEffect, Table

OWN_WORK = (RunWork.OTHER, RunWork.MODEL, RunWork.SAVING)
"""What a line does that makes a step long by itself; rules for input, tracing and building report the rest."""

OF_EACH_STEP = (LineWork.OPERATIONS, LineWork.READING, LineWork.CONVERTING, LineWork.ENTERING)
"""What a line does that a training step consists of."""

OFTEN = 0.05
"""Share of a usual step from which a line belongs to every step: it does not come sometimes."""

SHOWN = 3
"""Lines with remedies of their own: those that take most."""


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
        always = _in_each_step(breakdown, usual, set(LineWork) if contended else OF_EACH_STEP)
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

    def finding(self, least: float) -> Finding:
        """Report the lines; ``least`` is the share from which they are reported."""
        first = self.lines[0]
        every = f", about every {counted(self.every, 'step')}" if self.every else ""
        does = f" ({_called(first)})" if first.calls else ""
        return Finding(
            summary=f"{self.long:,} of {counted(self.steps, 'step')} of the run took over 1.5 times the usual time"
            f"{every}, with {duration(first.ms)} ({percent(first.ms / self.ms * self.share)} of what recurs) at "
            f"{location(first.at)}{does}",
            evidence=(
                Measure.share("share in these lines of what recurs in the run", self.share, least),
                self._table(),
            ),
            remedies=tuple(_less_often(line) for line in self.lines[:SHOWN]),
            run_effects=tuple(self.effects()),
            concern=Concern.LONG_STEPS,
            alike=len(self.lines) - 1,
        )

    def _table(self) -> Table:
        return Table.of(
            self.lines,
            ("your line", lambda line: line.at or ""),
            ("calls", lambda line: line.calls),
            ("time in long steps", lambda line: ms(line.ms)),
            ("stack samples", lambda line: count(line.samples)),
        )


def _in_each_step(
    breakdown: Breakdown | None, usual: HostLines | None, kinds: Collection[LineWork]
) -> set[Location | None]:
    """Return the lines with work of these kinds that a usual step consists of."""
    if breakdown is None or usual is None:
        return set()
    least = OFTEN * breakdown.step_ms
    return {
        line.at
        for lines in usual.parts.values()
        for line in lines
        if line.ms >= least and not line.callback and line.work in kinds
    }


def _called(line: LongLine) -> str:
    """Return the name of the function; of a special method also its class, as in "Layer.__call__"."""
    of, name = ("", *line.calls.split("."))[-2:]
    return f"{of}.{name}" if of and name.startswith("__") else name


def _less_often(line: LongLine) -> Remedy:
    what = f"Call {_called(line)}" if line.calls else "Do the work of this line"
    return Remedy(f"{what} less often, or once per epoch", at=line.at)
