"""What only the traced steps show: time of few of them that the run's other steps lack.

The profiler starts and ends in the traced window, and a window of 20 steps may hold one long wait by chance. A
finding about such time would be one about the recording, not about the run.
"""

from collections.abc import Mapping
from statistics import fmean, median

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Finding, NotApplicable, Outcome

# Share of a part's time that few of the traced steps have, from which the typical traced step shows no fault in it;
# and share of that which other steps have at least, if it is the run's.
MOSTLY = 0.5
TIMES = 2  # Times the traced steps that the run's other steps are at least, to say that they lack something
UNEVEN = 0.02  # Share of the step that a part takes beyond its median, below which steps differ for no reason


class OnlyTraced(Record):
    """The parts whose time few traced steps have and the other steps lack: ms that these add to a traced step."""

    parts_ms: Mapping[str, float] = field(default_factory=dict)
    beyond_ms: float = 0.0  # what long steps add to each of the other steps

    def checked(self, outcome: Outcome) -> Outcome:
        """Return an outcome; a finding about these parts alone is not one about the run."""
        if not isinstance(outcome, Finding) or outcome.run_effects or not outcome.effects:
            return outcome
        stages = {effect.stage for effect in outcome.effects}
        if not stages <= self.parts_ms.keys():
            return outcome
        added = milliseconds(max(self.parts_ms[stage] for stage in stages))
        return NotApplicable(
            reason=f"{outcome.summary}, but only the traced steps show it: few of them take this time, which adds "
            f"{added} to each, and in the other steps of the run everything that varies adds "
            f"{milliseconds(self.beyond_ms)}"
        )


def only_traced(chart: Chart) -> OnlyTraced:
    """Return what only the traced steps show; nothing where the other steps are too few, or were not timed."""
    steps, breakdown = chart.get(Steps), chart.get(Breakdown)
    if steps is None or breakdown is None or len(steps.steps) != len(breakdown.steps):
        return OnlyTraced()
    others = _beyond_of_others(chart, steps.count)
    if others is None:
        return OnlyTraced()
    rows = [row for row, steady in zip(breakdown.steps, steps.steady, strict=True) if steady]
    least = max(UNEVEN * breakdown.step_ms, others / MOSTLY)
    parts_ms = {}
    for part in breakdown.median if rows else ():
        times = [row[part] for row in rows]
        mean, added = fmean(times), fmean(times) - median(times)
        if added > least and added >= MOSTLY * mean:  # else the median step has most of it
            parts_ms[part] = added
    return OnlyTraced(parts_ms, others)


def _beyond_of_others(chart: Chart, traced: int) -> float | None:
    """Return what long steps add to each of the run's other steps, in ms; None where that is unknown."""
    pace, run, phases = chart.get(UntracedPace), chart.get(RunSteps), chart.get(RunPhases)
    if pace is not None and pace.beyond_ms is not None and pace.untraced.count >= TIMES * traced:
        return pace.beyond_ms
    if run is None or phases is None or not phases.whole or run.count < (1 + TIMES) * traced:
        return None
    return run.rest_ms / run.count
