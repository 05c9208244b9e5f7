"""Calls of a loop that get slower where no training step does: of sessions, functions, predict and evaluate."""

from tfdoctor.facts.growth.growing_counts import clause, counts_table, growing_counts, makes_operations
from tfdoctor.facts.phases.run_growth import RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.rules.growing_step.causes import for_calls
from tfdoctor.rules.growing_step.slowing_calls import SlowingCall, SlowingCalls
from tfdoctor.terms.humanize import location, number, time_span
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Concern, Finding, Location, Measure, Recurrence, RunEffect


def slowest(
    calls: SlowingCalls | None, phases: RunPhases, least: float, share: float, fewest: float
) -> SlowingCall | None:
    """Return the calls that lose most, if that is enough: by their ratio, of the run, and by their number."""
    run_ms = phases.recurring_ms or phases.total_ms
    found = [
        call
        for call in (calls.calls if calls else ())
        if call.calls >= fewest and call.last_ms >= least * call.first_ms and call.beyond_ms >= share * run_ms
    ]
    return next(iter(found), None)


def of_calls(call: SlowingCall, growth: RunGrowth, phases: RunPhases) -> Finding:
    """State how the calls get slower, and what grows along; without that it has no price."""
    counts = growing_counts(growth)
    maker = makes_operations(counts, phases)
    share = call.beyond_ms / phases.total_ms
    effect = RunEffect(
        phase=next((line.phase for line in phases.lines if line.at == call.at), Phase.UNNAMED),
        of=ms(call.beyond_ms),
        subject=location(call.at),
        recurs=Recurrence.PER_CALL,
        times=call.calls,
        bound=Bound.AT_MOST,
    )
    return Finding(
        summary=_summary(call, counts, maker),
        evidence=(
            Measure("time of a call at the beginning", ms(call.first_ms)),
            Measure("time of a call at the end", ms(call.last_ms)),
            Measure("calls", count(call.calls)),
            Measure("time of the calls beyond the first one", ms(call.beyond_ms)),
            Measure.share("share of the run beyond the first one", share),
            *counts_table(counts),
        ),
        remedies=(for_calls(call, counts, maker or call.at),),
        concern=Concern.RUN,
        run_effects=(effect,) if counts else (),
    )


def _summary(call: SlowingCall, counts: tuple[Trend, ...], maker: Location | None) -> str:
    span = time_span(call.first_ms, call.last_ms)
    slower = f"{call.name} at {location(call.at)} got slower, from {span} over {number(call.calls)} calls"
    if not counts:
        return f"{slower}; longer inputs or a slower machine would look the same"
    made = f", made at {location(maker)}" if maker else ""
    return f"{slower}; {clause(counts[0])}{made}"
