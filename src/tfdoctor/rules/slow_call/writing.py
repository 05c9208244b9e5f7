"""How often a loop writes what somebody reads, and what that takes of the run."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.slow_calls import SlowCall, SlowCalls
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Measure, Recurrence, Remedy, RunEffect, StepWork

READ_MS = 5000.0
"""Time from which on somebody can read what comes next, in ms: TensorBoard looks for new data every 5 s, the
default of its --reload_interval."""


MOST_STEPS = 100
"""Steps from one write to the next at most: 99 % of its time is saved then."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Lines that write, if any do, in each of ``steps`` steps, of ``step_ms`` without the writing.

    ``lines`` are the same in the account of the run; of their time in steps, functions of TensorFlow are left out.
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
        return cls(step_ms, bool(writes), steps.count if steps else 0, tuple(one for one in lines if one.at in at))

    @property
    def often(self) -> int:
        """In how many steps one write is enough; 1 where each step is long enough to read it."""
        return min(MOST_STEPS, ceil(READ_MS / max(self.step_ms, 1.0)))

    @property
    def measures(self) -> Sequence[Measure]:
        """The time from one write to the next, with the shortest in which somebody can read it."""
        label = "time from one write to the next, without the writing itself"
        return [Measure(label, ms(self.step_ms), ms(READ_MS))] if self.writes else []

    @property
    def remedy(self) -> Remedy:
        """Write as often as somebody can read."""
        edit = "every-hundred-steps" if self.often == MOST_STEPS else ""
        code = RARELY.format(self.often)
        return Remedy(f"Write every {self.often} steps", code, edit_id=edit, changes=FEWER)

    @property
    def effects(self) -> Sequence[RunEffect]:
        """What that leaves of the time in the account of the run, where traced steps may take less than others."""
        times: dict[Phase, float] = defaultdict(float)
        for line in self.lines:
            times[line.phase] += line.ms - (line.executes_ms if line.phase is Phase.STEPS else 0.0)
        return [
            RunEffect(
                phase=phase,
                of=ms(time_ms),
                subject=StepWork.SLOW_CALLS,
                scales=1.0 / self.often,
                recurs=Recurrence.PER_STEP,
                times=self.steps,
                bound=Bound.AT_MOST,
            )
            for phase, time_ms in times.items()
        ]


FEWER = "nothing is written in the other steps"

RARELY = """\
if step % {} == 0:  # somebody can read what comes every 5 s, no sooner
    ...  # summaries, prints, tables, images"""
