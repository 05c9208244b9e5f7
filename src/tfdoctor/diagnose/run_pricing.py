"""What findings save of the run, and the severity and the order that follow from it.

Only where the account holds the whole run: of a traced window alone nothing follows for the rest of a run. The run
model composes all effects, those on the step and those on phases, so that no time is saved twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from tfdoctor.diagnose.run_account import times_to
from tfdoctor.diagnose.savings import WORTH_SAYING, relief
from tfdoctor.diagnosis import Result, RunSaving, RunTogether, Together
from tfdoctor.diagnosis.rank import ResultRank
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.run_model import RunModel
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import ms
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

    def longer(self, times: float) -> float:
        """Return it in a run with so many times the epochs, in ms."""
        return self.once_ms + times * self.recurring_ms

    def share(self, of: Self) -> float:
        """Return its share, 0 to 1."""
        return self.ms / of.ms if of.ms else 0.0

    def rated(self, of: Self, times: float | None) -> float:
        """Return the larger of its shares in the run and, of what recurs, in what recurs of the run, 0 to 1.

        The run is one with so many times the epochs, where that is known.
        """
        whole = self.share(of) if times is None else self.extrapolated(of, times)
        recurring = self.recurring_ms / of.recurring_ms if of.recurring_ms else 0.0
        return min(1.0, max(whole, recurring))

    def extrapolated(self, of: Self, times: float) -> float:
        """Return its share in a run with so many times the epochs, 0 to 1."""
        whole = of.longer(times)
        return self.longer(times) / whole if whole else 0.0


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
        return cls(model, times_to(chart, for_epochs))

    @property
    def run(self) -> Amount:
        """The run itself, without tfdoctor's own work."""
        phases = self.model.phases
        own_ms = phases.of(Phase.PROFILER)
        return Amount(phases.total_ms - phases.recurring_ms - own_ms, phases.recurring_ms)

    def priced(self, results: Sequence[Result]) -> tuple[Result, ...]:
        """Return the results with their savings of the run, by severity and then by the time of the run."""
        effects = {r.rule.name: r.outcome.effects for r in results if isinstance(r.outcome, Finding)}
        judged = [
            self._judged(result, relief(result.rule.name, effects) if result.saving else ()) for result in results
        ]
        return tuple(sorted(judged, key=ResultRank(self.time_ms)))

    def together(self, results: Iterable[Result], steps: Together | None) -> RunTogether | None:
        """Return what all changes save of the run: those that do together for the step, and those about the run."""
        in_step = steps.rules if steps else ()
        found = [
            (result, result.outcome) for result in results if isinstance(result.outcome, Finding) and result.run
        ]
        found = [one for one in found if one[0].rule.name in in_step or one[1].run_effects]
        priced = [finding for result, finding in found if result.saving]
        effects = [effect for finding in priced for effect in finding.effects]
        run_effects = [effect for _, finding in found for effect in finding.run_effects]
        saved = self.saved(effects, run_effects)
        if saved.ms <= 0:
            return None
        ceiling = any(result.run and result.run.bound is Bound.AT_MOST for result, _ in found)
        after = self.model.after_ms(effects, run_effects)
        return RunTogether(
            total=ms(saved.ms),
            share=saved.share(self.run),
            rules=tuple(result.rule.name for result, _ in found),
            bound=Bound.AT_MOST if ceiling else Bound.EXPECTED,
            after_ms={phase.value: left for phase, left in after.items()},
            extrapolated=saved.extrapolated(self.run, self.times) if self.times else None,
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
        finding = result.outcome
        if result.run:
            return result.run.total.value
        if not isinstance(finding, Finding):
            return 0.0
        if result.takes:
            return max(0.0, self.saved(finding.effects, ()).ms)
        long = self.model.steps.long if self.model.steps else None
        return long.beyond_ms if long and finding.concern is Concern.LONG_STEPS else 0.0

    def _judged(self, result: Result, beside: tuple[Effect, ...]) -> Result:
        """Give a finding its saving of the run, and its severity; one about the run worth nothing is healthy."""
        finding = result.outcome
        if not isinstance(finding, Finding):
            return result
        effects = (*finding.effects, *beside) if result.saving else ()
        saved = self.saved(effects, finding.run_effects)
        if self._is_trifle(result, finding, saved):
            least = percent(WORTH_SAYING)
            little = f"{finding.summary}; fixing it would save less than {least} of the run"
            return Result(rule=result.rule, outcome=Healthy(summary=little, evidence=finding.evidence))
        run = self._saving(result, finding, effects, saved) if saved.ms > 0 else None
        return replace(result, run=run, severity=self._severity(result, finding, saved))

    def _is_trifle(self, result: Result, finding: Finding, saved: Amount) -> bool:
        """Whether a finding is about time of the run alone, and about too little of it to be said."""
        alone = bool(finding.run_effects) and not result.saving and not result.takes
        return alone and finding.severity is None and saved.rated(self.run, self.times) < WORTH_SAYING

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
        return min(result.severity, self._most(finding))

    def _most(self, finding: Finding) -> Severity:
        """Return the severity of all the recurring time that a finding without a saving can be about."""
        phases, recurring = self.model.phases, self.model.phases.recurring_ms
        concerned = CONCERNED.get(finding.concern)
        if concerned is None or finding.run_effects or not recurring:
            return Severity.CRITICAL
        return Severity.of(phases.of(*concerned) / recurring)

    def _saving(self, result: Result, finding: Finding, effects: tuple[Effect, ...], saved: Amount) -> RunSaving:
        recurs, times, of_it = self._recurrence(finding, effects)
        stated = [effect.bound for effect in finding.run_effects]
        stated += [result.saving.bound] if result.saving else []
        each = of_it / times if times else of_it
        return RunSaving(
            total=ms(saved.ms),
            share=min(1.0, saved.share(self.run)),
            rated=saved.rated(self.run, self.times),
            recurs=recurs,
            each=ms(each),
            times=times,
            bound=Bound.AT_MOST if Bound.AT_MOST in stated else Bound.EXPECTED,
            how=_how(recurs, each, times),
            extrapolated=saved.extrapolated(self.run, self.times) if self.times else None,
        )

    def _recurrence(self, finding: Finding, effects: tuple[Effect, ...]) -> tuple[Recurrence, int, float]:
        """Return how most of a finding's time recurs, how often it came, and what is saved of that, in ms."""
        steps = self.model.steps.count if self.model.steps else 0
        kinds = [(Recurrence.PER_STEP, steps, self.model.saving_ms(effects, ()))] if effects else []
        for recurs in Recurrence:
            own = [effect for effect in finding.run_effects if effect.recurs is recurs]
            if own:
                times = max(effect.times for effect in own)
                kinds.append((recurs, times, self.model.saving_ms((), own)))
        return max(kinds, key=lambda kind: kind[2])


def _how(recurs: Recurrence, each_ms: float, times: int) -> str:
    """Say how a saving of the run is made of what is saved each time."""
    if recurs is Recurrence.ONCE or not times:
        how_often = "comes once" if recurs is Recurrence.ONCE else "recurs; how often was not counted"
        return f"The run model takes this time out of its phase, which {how_often}."
    unit = {Recurrence.PER_EPOCH: "epoch", Recurrence.PER_STEP: "step", Recurrence.PER_CALL: "call"}[recurs]
    return f"{milliseconds(each_ms)} per {unit} on average, in {counted(times, unit)} of the recorded run."
