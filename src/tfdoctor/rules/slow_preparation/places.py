"""The places that take too long to prepare data: loops over items, and adapt on small batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run_work.call_overhead import CallOverhead, call_overheads, rows_per_batch
from tfdoctor.facts.run_work.line_groups import LineGroup, line_groups
from tfdoctor.facts.run_work.run_tables import in_function
from tfdoctor.rules.slow_preparation.advice import ADVICE, IN_LARGE_BATCHES, PreparationAdvice
from tfdoctor.terms.humanize import location, number
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.units import count, ms, ratio
from tfdoctor.terms.verdict import Bound, Location, Remedy, RunEffect, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPlace:
    """A line that prepares data, with its time in the run; ``left`` is the share of it that remains."""

    fault: str
    at: Location
    ms: float
    action: str
    code: str
    left: float = 0.0
    within: str = ""
    group: LineGroup | None = None
    """Its sampled lines; None where calls of adapt were timed."""

    @classmethod
    def of_loop(cls, group: LineGroup, advice: PreparationAdvice) -> Self | None:
        """Return the place of a loop over items; None where its line is unknown."""
        if group.at is None:
            return None
        return cls(
            fault=advice.fault,
            at=group.at,
            ms=group.ms,
            action=advice.action,
            code=advice.code,
            within=in_function(group),
            group=group,
        )

    @classmethod
    def of_adapt(cls, found: CallOverhead) -> Self:
        """Return the place of a call of adapt on small batches."""
        call = found.call
        rows = number(rows_per_batch(call) or 0.0)
        examples = "one example" if rows == "1" else f"{rows} examples"
        return cls(
            fault=f"{call.name} reads {number(call.batches or 0.0)} batches of {examples}",
            at=found.at,
            ms=found.of_ms,
            action=IN_LARGE_BATCHES.action,
            code=IN_LARGE_BATCHES.code,
            left=found.left,
        )

    @property
    def remedy(self) -> Remedy:
        """The change, at the line."""
        return Remedy(self.action, f"# {location(self.at)}{self.within}\n{self.code}", self.at)

    @property
    def effect(self) -> RunEffect:
        """Its time, which comes once."""
        return RunEffect(
            phase=Phase.PREPARING, of=ms(self.ms), subject=location(self.at), scales=self.left, bound=Bound.AT_MOST
        )


def slow_places(phases: RunPhases, calls: RunCalls | None) -> tuple[SlowPlace, ...]:
    """Return all such places, those that take most first."""
    adapted = call_overheads(calls, RunCall.ADAPT) if calls else ()
    groups = line_groups(phases.at(Phase.PREPARING))
    loops = (SlowPlace.of_loop(group, ADVICE[group.work]) for group in groups if group.work in ADVICE)
    found = [*filter(None, loops), *map(SlowPlace.of_adapt, adapted)]
    return tuple(sorted(found, key=lambda place: -place.ms))


def adapt_table(calls: Sequence[MadeCall], total_ms: float) -> tuple[Table, ...]:
    """Return the batches and the time of calls of adapt; () where there are none."""
    table = Table.of(
        calls,
        ("your line", lambda call: call.at),
        ("function", lambda call: call.name),
        ("calls", lambda call: count(call.count)),
        ("batches of a call", lambda call: count(call.batches or 0.0)),
        ("examples of a batch", lambda call: count(rows_per_batch(call) or 0.0)),
        ("time per batch", lambda call: ms(call.each_ms / max(1.0, call.batches or 0.0))),
        ("time", lambda call: ms(call.ms)),
        ("share of the run", lambda call: ratio(call.ms / total_ms if total_ms else 0.0)),
    )
    return (table,) if calls else ()
