"""Time that a run loses in calls of the model: to many short calls, small batches, or Python around them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run_work.call_overhead import CallOverhead, OverheadKind, recurrence, rows_per_batch
from tfdoctor.facts.run_work.called_work import ONE_BY_ONE, CalledWork
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.facts.run_work.run_tables import call_name, call_table, line_table
from tfdoctor.terms.humanize import location, milliseconds, number, percent
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Location, Measure, RunEffect, Table


@dataclass(frozen=True, slots=True)
class LostTime:
    """What calls and loops of Python lose, and those that lose ``least_ms`` or more."""

    phases: RunPhases
    least_ms: float
    longest_ms: float
    slow: tuple[CallOverhead, ...]
    python: tuple[LineGroup, ...]

    @classmethod
    def of(
        cls, phases: RunPhases, calls: Iterable[CallOverhead], groups: Iterable[LineGroup], least_ms: float
    ) -> Self:
        """Compare what calls lose, and what loops over examples take, with the least time."""
        small = tuple(calls)
        loops = [
            group
            for group in groups
            if (group.work is CalledWork.MODEL or group.work in ONE_BY_ONE)
            and group.at is not None
            and any(line.repeats for line in group.lines)
        ]
        longest = max([*(one.saved_ms for one in small), *(one.ms for one in loops)], default=0.0)
        slow = tuple(one for one in small if one.saved_ms >= least_ms)
        return cls(phases, least_ms, longest, slow, tuple(g for g in loops if g.ms >= least_ms))

    def measures(self, work: str, phase: Phase) -> tuple[Measure, Measure]:
        """Return the time of a phase, and what one line loses at most."""
        longest, least = ms(self.longest_ms), ms(self.least_ms)
        line = Measure("longest time that a change at one line saves", longest, least)
        return Measure(f"time of {work}", ms(self.phases.of(phase))), line

    @property
    def tables(self) -> tuple[Table, ...]:
        """The calls and the lines."""
        total_ms = self.phases.total_ms
        called = call_table([one.call for one in self.slow], total_ms)
        return *called, *line_table(self.python, total_ms)

    def summary(self, results: str) -> str:
        """Return a sentence about what loses most; ``results`` are what Python processes."""
        if not self.slow:
            group = self.python[0]
            at, share = location(group.at), percent(group.ms / self.phases.total_ms)
            time = f"{milliseconds(group.ms)} ({share} of the run)"
            if group.work is CalledWork.MODEL:
                return f"A loop calls the model from Python at {at}, operation by operation: {time}"
            return f"{results} are processed one by one in Python at {at}: {time}"
        call, kind = self.slow[0].call, self.slow[0].kind
        name, at = call_name(call), location(call.at)
        share = percent(call.ms / self.phases.total_ms)
        time = f"{milliseconds(call.ms)} ({share} of the run), {milliseconds(call.each_ms)} each"
        if kind is OverheadKind.CALL:
            return f"A loop calls {name} {number(call.count)} times at {at}, which takes {time}"
        rows = number(rows_per_batch(call))
        return f"{name} at {at} works in batches of {rows} examples, which takes {time}"

    def effects(self, phase: Phase, calls: RunCalls) -> tuple[RunEffect, ...]:
        """Return what fewer and larger calls spare of the phase, and what is spared of Python."""
        return (
            *(
                RunEffect(
                    phase=phase,
                    of=ms(one.of_ms),
                    subject=location(one.at),
                    scales=one.left,
                    recurs=recurrence(one.call, calls),
                    times=one.call.count,
                    bound=one.bound,
                )
                for one in self.slow
            ),
            *(
                RunEffect(phase=group.phase, of=ms(group.ms), subject=location(group.at), bound=Bound.AT_MOST)
                for group in self.python
            ),
        )


def code_at(at: Location | None, code: str) -> str:
    """Return code under a comment with the line that it is about."""
    return f"# {location(at)}\n{code}"
