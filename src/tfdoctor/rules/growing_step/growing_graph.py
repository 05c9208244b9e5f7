"""A default graph to which a line in a loop adds operations again and again, whatever single steps take."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.growth.growing_counts import clause, counts_table, makes_operations
from tfdoctor.facts.phases.run_growth import Trend
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.rules.growing_step.causes import remedies
from tfdoctor.terms.humanize import counted, location, milliseconds
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Concern, Finding, Location, Measure, Recurrence, RunEffect


@dataclass(frozen=True, slots=True)
class GrowingGraph:
    """The line that makes operations, the time of that, and of the long steps, which run the larger graph first."""

    maker: Location
    making_ms: float
    steps: RunSteps
    longer_ms: float

    @classmethod
    def of(cls, counts: tuple[Trend, ...], phases: RunPhases, steps: RunSteps, share: float) -> Self | None:
        """Return None where no line is known to do so, or where it takes less than a share of the run."""
        maker = makes_operations(counts, phases)
        making_ms = sum(line.ms for line in phases.at(Phase.BUILDING) if line.at == maker)
        beyond_ms = phases.of(Phase.STEPS) - steps.count * steps.median_ms
        longer_ms = max(0.0, beyond_ms) if steps.long else 0.0
        enough = making_ms + longer_ms >= share * (phases.recurring_ms or phases.total_ms)
        return cls(maker, making_ms, steps, longer_ms) if maker and enough else None

    def finding(self, counts: tuple[Trend, ...]) -> Finding:
        """State what it takes, and to make the operations once."""
        took = milliseconds(self.making_ms)
        making = f"{location(self.maker)} makes operations again and again, which took {took}"
        after = ""
        if self.steps.long:
            long = counted(self.steps.long.count, "long step")
            after = f"; {long} took {milliseconds(self.longer_ms)} beyond the usual time"
        return Finding(
            summary=f"{making}, and {clause(counts[0])}{after}",
            evidence=(
                Measure("time of making operations again and again", ms(self.making_ms)),
                Measure("time of the steps beyond the usual one", ms(self.longer_ms)),
                *counts_table(counts),
            ),
            remedies=remedies(counts, None, self.maker),
            concern=Concern.RUN,
            run_effects=(
                self._effect(Phase.BUILDING, self.making_ms, self.maker),
                self._effect(Phase.STEPS, self.longer_ms, self.steps.at),
            ),
        )

    def _effect(self, phase: Phase, time_ms: float, at: Location | None) -> RunEffect:
        return RunEffect(
            phase=phase,
            of=ms(time_ms),
            subject=location(at),
            recurs=Recurrence.PER_STEP,
            times=self.steps.count,
            bound=Bound.AT_MOST,
        )
