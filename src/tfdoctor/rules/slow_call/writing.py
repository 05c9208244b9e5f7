"""How often a loop writes what somebody reads, and what that takes of the run beside the steps."""

from dataclasses import dataclass
from math import ceil
from typing import Self

from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.line_work import SlowCall
from tfdoctor.facts.step_time.slow_calls import SlowCalls
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Recurrence, RunEffect

READ_MS = 5000.0
"""Time from which on somebody can read what comes next, in ms: TensorBoard looks for new data every 5 s, the
default of its --reload_interval."""

MOST_STEPS = 100
"""Steps from one write to the next at most: 99 % of its time is saved then."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Lines that write, if any do, in each of ``steps`` steps, of ``step_ms`` without the writing.

    ``lines`` are the same in the account of the run, where their time is not that of steps.
    """

    step_ms: float
    writes: bool = False
    steps: int = 0
    lines: tuple[RunLine, ...] = ()

    @classmethod
    def measure(
        cls, slow: SlowCalls, breakdown: Breakdown, phases: RunPhases | None, steps: RunSteps | None
    ) -> Self:
        """Find the lines in the account of the run."""
        writes = [line for line in slow.lines if line.call is SlowCall.WRITE]
        step_ms = max(0.0, breakdown.step_ms - sum(line.ms for line in writes))
        at = {line.at for line in writes}
        lines = phases.lines if phases and phases.whole else ()
        beside = (line for line in lines if line.at in at and line.phase is not Phase.STEPS)
        return cls(step_ms, bool(writes), steps.count if steps else 0, tuple(beside))

    @property
    def often(self) -> int:
        """In how many steps one write is enough; 1 where each step is long enough to read it."""
        return min(MOST_STEPS, ceil(READ_MS / max(self.step_ms, 1.0)))

    @property
    def effects(self) -> tuple[RunEffect, ...]:
        """What that leaves of the time beside the steps."""
        return tuple(
            RunEffect(
                phase=line.phase,
                of=ms(line.ms),
                subject=location(line.at),
                scales=1.0 / self.often,
                recurs=Recurrence.PER_STEP,
                times=self.steps,
                bound=Bound.AT_MOST,
            )
            for line in self.lines
        )
