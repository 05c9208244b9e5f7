"""What changes save of the run: the only place that turns effects on steps and phases into time of the run.

    step    = steps x what the step model saves of one, at most its share of the steps like the traced ones
    subject = the largest of  of x (1 - scales)  among the effects on it
    phase   = time x (1 - whole / time) x (1 - subjects / time), and of steps x (1 - step / time)

An effect on the steps and one on the phase with the same subject are about the same time: the larger counts.
So no effect saves a ms twice, and all together never more than the phase takes. Subjects in the steps are work of
the host in each of them, as far as the typical step has such time: what the input hides of it saves nothing.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.terms.verdict import RunEffect

HOST_PARTS = (Stage.HOST, Stage.BETWEEN)  # of the step, in which Python works


class RunModel(Record):
    """The run as its phases, and its steps as the step model has them; ``steps`` may be None."""

    phases: RunPhases
    steps: RunSteps | None
    step: StepModel | None

    @classmethod
    def measure(cls, phases: RunPhases, steps: RunSteps | None, step: StepModel | None) -> Self:
        """Take the phases, all steps, and the model of the traced one."""
        return cls(phases, steps, step)

    def saving_ms(self, effects: Iterable[Effect], run_effects: Iterable[RunEffect]) -> float:
        """Return what effects save of the run together, in ms; negative where steps get slower."""
        after = self.after_ms(effects, run_effects)
        return sum(time - after[phase] for phase, time in self.phases.times.items())

    def after_ms(self, effects: Iterable[Effect], run_effects: Iterable[RunEffect]) -> dict[Phase, float]:
        """Return the time of each phase with these effects, in ms."""
        saved: dict[Phase, dict[str, float]] = defaultdict(dict)
        for effect in run_effects:  # those on the same subject are about the same time
            own = max(0.0, effect.of.value * (1.0 - effect.scales))
            subjects = saved[effect.phase]
            subjects[effect.subject] = max(own, subjects.get(effect.subject, 0.0))
        effects, stepping = tuple(effects), self.phases.of(Phase.STEPS)
        of_steps = self._of_steps(effects, stepping) / stepping if stepping > 0 else 0.0
        for subject in saved[Phase.STEPS].keys() & {effect.subject for effect in effects if effect.subject}:
            others = [effect for effect in effects if effect.subject != subject]
            more = saved[Phase.STEPS][subject] - of_steps * stepping + self._of_steps(others, stepping)
            saved[Phase.STEPS][subject] = max(0.0, more) / (1.0 - of_steps) if of_steps < 1.0 else 0.0
        of_host = sum(ms for subject, ms in saved[Phase.STEPS].items() if subject)
        hidden = 1.0 - self._exposed(of_host, effects)
        left = dict.fromkeys(self.phases.times, 0.0)
        for phase, time in self.phases.times.items():
            if time > 0:  # an effect on the whole of it is about its subjects as well
                whole = min(time, saved[phase].pop("", 0.0))
                own = sum(saved[phase].values()) * (1.0 - hidden if phase is Phase.STEPS else 1.0)
                left[phase] = time * (1.0 - whole / time) * (1.0 - min(time, own) / time)
        if stepping > 0:
            left[Phase.STEPS] *= 1.0 - of_steps
        return left

    def _exposed(self, of_host: float, effects: Sequence[Effect]) -> float:
        """Return by which share of the host's work in all steps, in ms, these get shorter without it, 0 to 1."""
        # Where the steps of another training were traced, they say nothing of these.
        traced = self.steps is not None and self.steps.traced_ms is not None
        each = of_host / self.steps.count if self.steps and self.steps.count and traced else 0.0
        parts = {stage: self.step.exposed[stage] for stage in HOST_PARTS} if self.step else {}
        typical = min(each, sum(parts.values()))
        if self.step is None or typical <= 0:
            return 1.0
        share = typical / sum(parts.values())
        own = [Effect(stage, 0.0, "host's work", ms(share * time)) for stage, time in parts.items() if time]
        saved = self.step.saving([*effects, *own]) - self.step.saving(effects)
        return (each - typical + min(typical, max(0.0, saved))) / each

    def _of_steps(self, effects: Iterable[Effect], stepping: float) -> float:
        """Return what effects on the step save of all steps, in ms.

        Of steps unlike the traced ones the step model knows nothing; where the traced ones are slower than the
        others, as the profiler makes them, only their share is saved. Where long ones only wait longer, a bound on
        the input has its share of them as well.
        """
        effects = tuple(effects)
        if self.step is None or not effects or not self.step.step_ms > 0:
            return 0.0
        each = self.step.saving(effects)
        share = each / self.step.step_ms
        known = self.steps.window_share if self.steps else None
        like = stepping * (1.0 if known is None else known)
        most = min(share * like, stepping)
        bounds = any(e.stage is Stage.INPUT and e.bound is Bound.AT_MOST for e in effects)
        if self.steps is None or each <= 0 or (self.steps.wait_longer and bounds):
            return most
        return min(most, each * self.steps.count)
