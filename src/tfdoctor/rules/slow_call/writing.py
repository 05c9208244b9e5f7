"""How often a loop writes what somebody reads, and what that takes of the run."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.slow_calls import SPREAD, SlowCall, SlowCalls, SlowLine
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Location, Measure, Recurrence, Remedy, RunEffect, Stage, StepWork

READ_MS = 5000.0
"""Time from which on somebody can read what comes next, in ms: TensorBoard looks for new data every 5 s, the
default of its --reload_interval."""


MOST_STEPS = 100
"""Steps from one write to the next at most: 99 % of its time is saved then."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Lines that write, if any do, in each of ``steps`` steps, of ``step_ms`` without the writing.

    ``rows`` are the operations of summaries in the graph of the step, and ``in_graph`` their lines.

    ``lines`` are the same in the account of the run; of their time in steps, functions of TensorFlow are left out.
    """

    step_ms: float
    writes: bool = False
    steps: int = 0
    lines: tuple[RunLine, ...] = ()
    rows: tuple[OperationTime, ...] = ()
    in_graph: tuple[SlowLine, ...] = ()

    @classmethod
    def measure(
        cls,
        slow: SlowCalls,
        breakdown: Breakdown,
        phases: RunPhases | None,
        steps: RunSteps | None,
        operations: Operations | None,
    ) -> Self:
        """Find the lines in the account of the run, and what the graph writes in most steps."""
        writes = [line for line in slow.lines if line.call is SlowCall.WRITE]
        at = {line.at for line in writes}
        rows = tuple(row for row in operations.rows if row.of_summary) if operations else ()
        rows = rows if max((row.calls for row in rows), default=0.0) >= SPREAD else ()
        in_graph = tuple(_in_graph(rows, slow.step_count))
        step_ms = max(0.0, breakdown.step_ms - sum(line.ms for line in (*writes, *in_graph)))
        lines = (one for one in (phases.lines if phases and phases.whole else ()) if one.at in at)
        count = steps.count if steps else 0
        return cls(step_ms, bool(writes or in_graph), count, tuple(lines), rows if in_graph else (), in_graph)

    @property
    def often(self) -> int:
        """In how many steps one write is enough; 1 where each step is long enough to read it."""
        return min(MOST_STEPS, ceil(READ_MS / max(self.step_ms, 1.0)))

    @property
    def measures(self) -> Sequence[Measure]:
        """The time from one write to the next, with the shortest in which somebody can read it."""
        label = "time from one write to the next, without the writing itself"
        return [Measure(label, ms(self.step_ms), ms(READ_MS))] if self.writes else []

    def remedy(self, line: SlowLine) -> Remedy:
        """Write as often as somebody can read."""
        in_graph = line in self.in_graph
        edit = "every-hundred-steps" if self.often == MOST_STEPS and not in_graph else ""
        code = (IN_GRAPH if in_graph else RARELY).format(self.often)
        return Remedy(f"Write every {self.often} steps", code, edit_id=edit, changes=FEWER)

    @property
    def step_effects(self) -> Sequence[Effect]:
        """What that leaves of the operations of the graph."""
        return [row.scaled(1.0 / self.often) for row in self.rows if row.ms and self.often > 1]

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


def _in_graph(rows: Sequence[OperationTime], steps: int) -> Iterator[SlowLine]:
    """Yield the lines of summaries; those of operations in branches are of the summary that they are made for."""
    at = {_summary(row): row.at for row in rows if row.at}
    groups: dict[Location, list[OperationTime]] = defaultdict(list)
    for row in rows:
        if line := row.at or at.get(_summary(row)):
            groups[line].append(row)
    for line, group in groups.items():
        seen = round(steps * max(row.calls for row in group))
        yield SlowLine(line, SlowCall.WRITE, seen, steps, {Stage.DEVICE: sum(row.ms for row in group)})


def _summary(row: OperationTime) -> str:
    return row.name.partition("write_summary")[0]


FEWER = "nothing is written in the other steps"

RARELY = """\
if step % {} == 0:  # somebody can read what comes every 5 s, no sooner
    ...  # summaries, prints, tables, images"""

IN_GRAPH = """\
with tf.summary.record_if(tf.equal(step % {0}, 0)):  # in a tf.function
    ...  # summaries
# in a Session: run the merged summaries every {0} steps, and the training alone in the others"""
