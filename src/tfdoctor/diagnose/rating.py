"""How severe findings are by the steps and the run that they rest on, what they save of the run, and their order.

The run counts only where the account holds the whole of it: of a traced window alone nothing follows for the rest
of a run. The run model composes all effects, those on the step and those on phases, so that no time is saved twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from tfdoctor.diagnose.savings import WORTH_SAYING, relief, too_few_steps, too_little
from tfdoctor.diagnose.summary.account import extrapolation
from tfdoctor.diagnosis.rank import rank
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Together
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps
from tfdoctor.terms.humanize import counted, milliseconds
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Concern, Effect, Finding, Healthy, Recurrence, RunEffect, Severity

# The phases that hold what a finding is about: tracing and the end of an epoch may make a step long.
CONCERNED: Mapping[Concern, tuple[Phase, ...]] = {
    Concern.TYPICAL_STEP: (Phase.STEPS,),
    Concern.LONG_STEPS: (Phase.STEPS, Phase.TRACING, Phase.BOUNDARIES),
}


class Amount(Record):
    """Time of the run in ms: what comes once, and what a longer run has more of."""

    once_ms: float
    recurring_ms: float

    @property
    def ms(self) -> float:
        """All of it."""
        return self.once_ms + self.recurring_ms

    def share(self, of: Self, times: float | None = None) -> float:
        """Return its share, 0 to 1, in the run, or in one with so many times the epochs."""
        mine, whole = (one.once_ms + (1.0 if times is None else times) * one.recurring_ms for one in (self, of))
        return mine / whole if whole else 0.0

    def rated(self, of: Self, times: float | None) -> float:
        """Return the larger of its shares in the run and, of what recurs, in what recurs of the run, 0 to 1."""
        recurring = self.recurring_ms / of.recurring_ms if of.recurring_ms else 0.0
        return min(1.0, max(self.share(of, times), recurring))


class RunPricing(Record):
    """Prices findings by a run that is known whole; ``times`` is how many times its epochs to extrapolate to."""

    model: RunModel
    times: float | None = None

    @classmethod
    def of(cls, chart: Chart, for_epochs: int | None = None) -> Self | None:
        """Return the pricing of a chart's run; None where the run is not known whole."""
        model = chart.get(RunModel)
        if model is None or not model.phases.whole or not model.phases.total_ms:
            return None
        return cls(model, extrapolation(chart, for_epochs)[1])

    @property
    def run(self) -> Amount:
        """The run itself, without tfdoctor's own work."""
        phases = self.model.phases
        own_ms = phases.of(Phase.PROFILER)
        return Amount(phases.total_ms - phases.recurring_ms - own_ms, phases.recurring_ms)

    def priced(self, results: Sequence[Result]) -> tuple[Result, ...]:
        """Return the results with their savings of the run, by severity and then by the time of the run."""
        effects = {result.rule.name: result.effects for result in results if result.finding}
        judged = (self._judged(one, relief(one.rule.name, effects) if one.saving else ()) for one in results)
        return tuple(sorted(judged, key=lambda result: rank(result, self.time_ms(result))))

    def together(self, results: Iterable[Result], steps: Together | None) -> RunTogether | None:
        """Return what all changes save of the run: those that do together for the step, and those about the run."""
        in_step = steps.rules if steps else ()
        found = [
            (result, finding)
            for result in results
            if isinstance(finding := result.outcome, Finding) and result.run
            if result.rule.name in in_step or finding.run_effects
        ]
        effects = [effect for result, finding in found if result.saving for effect in finding.effects]
        run_effects = [effect for _, finding in found for effect in finding.run_effects]
        saved = self.saved(effects, run_effects)
        if saved.ms <= 0:
            return None
        ceiling = any(result.run and result.run.bound is Bound.AT_MOST for result, _ in found)
        after = self.model.after_ms(effects, run_effects)
        return RunTogether(
            ms=saved.ms,
            share=saved.share(self.run),
            rules=tuple(result.rule.name for result, _ in found),
            bound=Bound.AT_MOST if ceiling else Bound.EXPECTED,
            phases_after_ms={phase.value: left for phase, left in after.items()},
            extrapolated_share=saved.share(self.run, self.times) if self.times else None,
        )

    def saved(self, effects: Iterable[Effect], run_effects: Iterable[RunEffect]) -> Amount:
        """Return what effects save together; what comes once is what those that recur do not save."""
        effects, run_effects = tuple(effects), tuple(run_effects)
        total = self.model.saving_ms(effects, run_effects)
        again = [effect for effect in run_effects if effect.recurs is not Recurrence.ONCE]
        if not effects and not again:
            return Amount(total, 0.0)
        if len(again) == len(run_effects):
            return Amount(0.0, total)
        recurring = min(total, self.model.saving_ms(effects, again))
        return Amount(total - recurring, recurring)

    def time_ms(self, result: Result) -> float:
        """Return the time of the run that a result is about, in ms; 0 where it is unknown."""
        if result.run:
            return result.run.ms
        if result.takes:
            return max(0.0, self.saved(result.effects, ()).ms)
        long = self.model.steps.long if self.model.steps else None
        return long.beyond_ms if long and _is_of(result, Concern.LONG_STEPS) else 0.0

    def _judged(self, result: Result, beside: tuple[Effect, ...]) -> Result:
        """Give a finding its saving of the run, and its severity; one about the run worth nothing is healthy."""
        finding = result.outcome
        if not isinstance(finding, Finding):
            return result
        effects = (*finding.effects, *beside) if result.saving else ()
        saved = self.saved(effects, finding.run_effects)
        alone = finding.run_effects and not result.saving and not result.takes
        if alone and finding.severity is None and saved.rated(self.run, self.times) < WORTH_SAYING:
            little = too_little(finding.summary, WORTH_SAYING, "run")
            return Result(rule=result.rule, outcome=Healthy(summary=little, evidence=finding.evidence))
        run = self._saving(result, finding, effects, saved) if saved.ms > 0 else None
        return replace(result, run=run, severity=self._severity(result, finding, saved))

    def _severity(self, result: Result, finding: Finding, saved: Amount) -> Severity | None:
        """Return the severity by the run: none is higher than the time allows that the finding is about."""
        if result.severity is None:
            return None
        if result.takes:
            share = self.saved(finding.effects, ()).rated(self.run, self.times)
            return min(result.severity, Severity.of(share))
        if finding.run_effects or result.saving:
            price = Severity.of(saved.rated(self.run, self.times))
            own = finding.severity or price
            once = not result.saving and not saved.recurring_ms  # a longer run has no more of it
            return own if once else max(price, own)
        concerned, phases = CONCERNED.get(finding.concern), self.model.phases
        if concerned is None or not phases.recurring_ms:
            return result.severity
        return min(result.severity, Severity.of(phases.of(*concerned) / phases.recurring_ms))

    def _saving(self, result: Result, finding: Finding, effects: tuple[Effect, ...], saved: Amount) -> RunSaving:
        # How most of a finding's time recurs, how often it came, and what is saved of that, in ms.
        steps = self.model.steps.count if self.model.steps else 0
        kinds = [(Recurrence.PER_STEP, steps, self.model.saving_ms(effects, ()))] if effects else []
        by_kind = {kind: [one for one in finding.run_effects if one.recurs is kind] for kind in Recurrence}
        kinds += [
            (kind, max(one.times for one in own), self.model.saving_ms((), own))
            for kind, own in by_kind.items()
            if own
        ]
        recurs, times, of_it = max(kinds, key=lambda kind: kind[2])
        each = of_it / times if times else of_it
        if recurs is Recurrence.ONCE or not times:
            often = "comes once" if recurs is Recurrence.ONCE else "recurs; how often was not counted"
            how = f"The run model takes this time out of its phase, which {often}."
        else:
            unit = {Recurrence.PER_EPOCH: "epoch", Recurrence.PER_STEP: "step", Recurrence.PER_CALL: "call"}[recurs]
            how = f"{milliseconds(each)} per {unit} on average, in {counted(times, unit)} of the recorded run."
        bounds = [effect.bound for effect in finding.run_effects]
        bounds += [result.saving.bound] if result.saving else []
        return RunSaving(
            ms=saved.ms,
            share=min(1.0, saved.share(self.run)),
            rated_share=saved.rated(self.run, self.times),
            recurs=recurs,
            each_ms=each,
            times=times,
            bound=Bound.AT_MOST if Bound.AT_MOST in bounds else Bound.EXPECTED,
            how=how,
            extrapolated_share=saved.share(self.run, self.times) if self.times else None,
        )


def rated(chart: Chart, results: Iterable[Result], run: RunPricing | None = None) -> tuple[Result, ...]:
    """Return the results in order: by the time of the run where it is known whole, else by that of the step.

    Of few steps each finding is a note without a saving, in the order of what it would save; one about the run
    needs no steps.
    """
    steps, slow, beyond_ms = chart.get(Steps), chart.get(SlowSteps), 0.0
    if steps and steps.median_ms:  # what long steps add to the mean training step
        whole = sum(step.total_ms * step.calls for step in steps.steps)
        beyond_ms = max(0.0, whole / sum(step.calls for step in steps.steps) - steps.median_ms)

    def time_ms(result: Result) -> float:
        if amount := result.saving or result.takes:
            return amount.ms_per_step
        return beyond_ms if _is_of(result, Concern.LONG_STEPS) else 0.0

    few = too_few_steps(chart)
    bounded = results if few else (_bounded(one, slow) for one in results)
    by_step = sorted(bounded, key=lambda one: rank(one, time_ms(one)))
    for at, one in enumerate(by_step if few else ()):
        severity = one.severity if _is_of(one, Concern.RUN) else Severity.NOTE
        by_step[at] = replace(one, severity=severity, saving=None) if one.finding else one
    return run.priced(by_step) if run else tuple(by_step)


def _is_of(result: Result, concern: Concern) -> bool:
    return result.finding is not None and result.finding.concern is concern


def _bounded(result: Result, slow: SlowSteps | None) -> Result:
    """Rate a finding no higher than the steps allow that it rests on.

    One about the typical step is never critical where slow steps take most of the time: its share is that of the
    mean step.
    """
    if not _is_of(result, Concern.TYPICAL_STEP) or result.severity is None or slow is None or not slow.prevail:
        return result
    amount = result.saving or result.takes
    share = amount.ms_per_step / slow.mean_ms if amount else 1.0
    return replace(result, severity=min(result.severity, Severity.of(share), Severity.WARNING))
