"""A default graph to which a line in a loop adds operations again and again, whatever single steps take."""

from tfdoctor.facts.growth.growing_counts import clause, counts_table, makes_operations
from tfdoctor.facts.phases.run_growth import Trend
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.rules.growing_step.causes import remedies
from tfdoctor.terms.humanize import counted, location, milliseconds
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Concern, Finding, Measure, Recurrence, RunEffect


def of_graph(
    counts: tuple[Trend, ...], phases: RunPhases, steps: RunSteps, share: float
) -> Finding | None:
    """State what making the operations takes, and the long steps that run the larger graph first.

    None where no line is known to make them again and again, or that takes less than a share of the run.
    """
    maker = makes_operations(counts, phases)
    making_ms = sum(line.ms for line in phases.at(Phase.BUILDING) if maker and line.at == maker)
    usual_ms = steps.count * steps.median_ms
    longer_ms = max(0.0, phases.of(Phase.STEPS) - usual_ms) if steps.long else 0.0
    run_ms = phases.recurring_ms or phases.total_ms
    if maker is None or making_ms + longer_ms < share * run_ms:
        return None
    long = steps.long.count if steps.long else 0
    after = (
        f"; {counted(long, 'long step')} took {milliseconds(longer_ms)} beyond the usual time"
        if long
        else ""
    )
    times = {Phase.BUILDING: (making_ms, maker), Phase.STEPS: (longer_ms, steps.at)}
    return Finding(
        summary=f"{location(maker)} makes operations again and again, which took {milliseconds(making_ms)}, and "
        f"{clause(counts[0])}{after}",
        evidence=(
            Measure("time of making operations again and again", ms(making_ms)),
            Measure("time of the steps beyond the usual one", ms(longer_ms)),
            *counts_table(counts),
        ),
        remedies=remedies(counts, None, maker),
        concern=Concern.RUN,
        run_effects=tuple(
            RunEffect(
                phase=phase,
                of=ms(time_ms),
                subject=location(at),
                recurs=Recurrence.PER_STEP,
                times=steps.count,
                bound=Bound.AT_MOST,
            )
            for phase, (time_ms, at) in times.items()
            if time_ms
        ),
    )
