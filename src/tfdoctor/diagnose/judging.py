"""What of the rules' findings counts: each gets its saving and severity, and those that save nothing say so."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tfdoctor.diagnose import saving_words as words
from tfdoctor.diagnose.savings import WORTH_SAYING, hides, saving_of
from tfdoctor.diagnosis import Result, Saving, Takes
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    NotApplicable,
    Outcome,
    PartTime,
    Severity,
    Stage,
)

# Share of the step. What saves less at most may save nothing, and a timer on a shared machine cannot tell.
WORTH_A_BOUND = 0.03


def judged(outcomes: Sequence[tuple[Rule, Outcome]], model: StepModel | None) -> list[Result]:
    """Judge every outcome; again without the findings that save nothing, as long as there are any."""
    effects = {rule.name: o.effects for rule, o in outcomes if isinstance(o, Finding)}
    results = [_judge(rule, outcome, model, effects) for rule, outcome in outcomes]
    remaining = [(result.rule, result.outcome) for result in results]
    if sum(isinstance(outcome, Finding) for _, outcome in remaining) == len(effects):
        return results
    return judged(remaining, model)


def _judge(rule: Rule, outcome: Outcome, model: StepModel | None, effects: dict[str, tuple[Effect, ...]]) -> Result:
    """Give a finding its saving and severity; one that saves nothing worth saying is healthy."""
    if not isinstance(outcome, Finding) or not outcome.effects or model is None:
        severity = outcome.severity or Severity.NOTE if isinstance(outcome, Finding) else None
        return Result(rule=rule, outcome=outcome, severity=severity)
    saving = saving_of(rule.name, model, effects)
    bounds = saving.bound is Bound.AT_MOST and not rule.general
    least = WORTH_A_BOUND if bounds else WORTH_SAYING
    if saving.share < least and not saving.after:
        if outcome.run_effects:  # its time is elsewhere in the run
            return Result(rule=rule, outcome=outcome, severity=outcome.severity or Severity.NOTE)
        little = words.too_little(outcome.summary, least)
        return Result(rule=rule, outcome=Healthy(summary=little, evidence=outcome.evidence))
    if model.distorted:
        return _unpriced(rule, outcome, saving)
    severity = Severity.of(saving.share)
    if outcome.severity:
        severity = (min if rule.general else max)(severity, outcome.severity)
    return Result(rule=rule, outcome=outcome, saving=saving, severity=severity)


def _unpriced(rule: Rule, outcome: Finding, saving: Saving) -> Result:
    """Return a finding without a saving, where tracing distorts the step; a small one as not applicable."""
    if Severity.of(saving.share) >= Severity.WARNING or outcome.run_effects:
        return Result(rule=rule, outcome=outcome, severity=Severity.NOTE)
    reason = words.distorted(outcome.summary)
    return Result(rule=rule, outcome=NotApplicable(reason=reason))


def within(left: Unexplained | None, outcome: Outcome) -> Outcome:
    """Limit a general finding to the time that no specific one names."""
    if not isinstance(outcome, Finding) or left is None:
        return outcome
    own = [
        effect
        for effect in outcome.effects
        if effect.stage in left.parts_ms and effect.subject not in left.subjects
    ]
    if outcome.effects and not own:
        return Healthy(summary=words.ALL_NAMED, evidence=outcome.evidence)
    named = dict.fromkeys(Stage, 0.0)
    for effect in own:
        named[effect.stage] += effect.of.value if effect.of else 0.0
    fits = {stage: min(1.0, left.parts_ms[stage] / time) for stage, time in named.items() if time}
    effects = (
        replace(effect, of=ms(effect.of.value * fits.get(effect.stage, 1.0))) if effect.of else effect
        for effect in own
    )
    return replace(outcome, effects=tuple(effects))


def timed(result: Result, model: StepModel | None) -> Result:
    """Let a general finding state the time that it names, and no saving.

    A change may spare only a part of it, or other work as well, such as the gradients of an operation. Its severity
    follows the time.
    """
    saving = result.saving
    if saving is None or model is None or not isinstance(result.outcome, Finding):
        return result
    takes = _takes(result.outcome, model, saving.per_step.value)
    return replace(result, saving=None, takes=takes)


def _takes(finding: Finding, model: StepModel, saved_ms: float) -> Takes:
    """Return the time that the summary states; where it states none, what the effects spare."""
    time = finding.takes or ms(saved_ms)
    return Takes(time, time.value / model.step_ms)


def names_input(results: Iterable[Result]) -> bool:
    """Whether a finding names work of the input, or the wait for it."""
    found = (result.outcome for result in results if isinstance(result.outcome, Finding))
    return any(effect.stage is Stage.INPUT for finding in found for effect in finding.effects)


def with_hidden(
    outcomes: Iterable[tuple[Rule, Outcome]], results: Iterable[Result], model: StepModel | None, *, named: bool
) -> list[Result]:
    """Say of findings that save nothing where the input takes as long as the rest of the step.

    ``outcomes`` are those of the ``results``, in the same order, before they were judged.
    """
    return [
        _behind_input(result, outcome, model, named=named)
        if model and isinstance(outcome, Finding) and isinstance(result.outcome, Healthy)
        else result
        for result, (_, outcome) in zip(results, outcomes, strict=True)
    ]


def _behind_input(result: Result, outcome: Finding, model: StepModel, *, named: bool) -> Result:
    """Return the result of a finding that saves nothing because of the input.

    Its time is necessary only as long as the input is: where no finding names the input, its time stays
    unexplained, and a general finding stands, since it states time and no saving.
    """
    if not isinstance(result.outcome, Healthy) or not hides(model, outcome.effects):
        return result
    stages = dict.fromkeys(effect.stage for effect in outcome.effects)
    if result.rule.general and not named and not model.distorted:
        saved = model.without_input.saving(outcome.effects)
        saved = min(saved, sum(model.exposed[stage] for stage in stages))
        own = Severity.of(saved / model.step_ms)
        severity = min(own, outcome.severity or own)
        takes = _takes(outcome, model, saved)
        return replace(result, outcome=outcome, takes=takes, severity=severity)
    hidden = tuple(
        PartTime(stage, ms(model.traced[stage] if named else 0.0), words.paced(model)) for stage in stages
    )
    return replace(result, outcome=replace(result.outcome, necessary=hidden))
