"""What changes save of the run: the only place that turns effects on steps and phases into time of the run."""

from collections.abc import Iterable
from dataclasses import dataclass

from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.verdict import Effect, RunEffect


@dataclass(frozen=True, slots=True)
class RunModel:
    """The run as its phases, and its steps as the step model has them; ``steps`` may be None."""

    phases: RunPhases
    steps: RunSteps | None
    step: StepModel | None

    def saving_ms(self, effects: Iterable[Effect], run_effects: Iterable[RunEffect]) -> float:
        """Return what effects save of the run together, in ms."""
        raise NotImplementedError
