"""Applies rules to a recording. Knows no particular rule and no renderer."""

import math
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tfdoctor.diagnose.accounts import unexplained
from tfdoctor.diagnose.rank import ResultRank
from tfdoctor.diagnose.window import only_traced
from tfdoctor.diagnosis import Result, Saving, Takes, Together
from tfdoctor.errors import ConfigError
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps
from tfdoctor.humanize import counted, milliseconds, percent
from tfdoctor.rule import Rule, Topic
from tfdoctor.units import ms
from tfdoctor.verdict import (
    Bound,
    Concern,
    Effect,
    Errored,
    Finding,
    Healthy,
    NotApplicable,
    Outcome,
    PartTime,
    Severity,
    Stage,
    StepWork,
)

WORTH_SAYING = 0.005
"""Share of the step. A change that saves less is not worth the time to read about it."""

WORTH_A_BOUND = 0.03
"""Share of the step. What saves less at most may save nothing, and a timer on a shared machine cannot tell."""

ROUNDING = 1e-6
"""Share of the step. A smaller difference is floating-point rounding, not the effect of a change."""


def examine(chart: Chart, rules: Iterable[Rule]) -> tuple[Result, ...]:
    """Apply every rule; a failure of one does not affect the others. The most severe finding comes first.

    The general rules are applied last: they are given what the findings of the specific ones leave unexplained.
    """
    rules, model = tuple(rules), model_of(chart)
    few, slow = too_few_steps(chart), chart.get(SlowSteps)
    window = only_traced(chart)
    specific = [(rule, window.checked(_apply(rule, chart))) for rule in rules if not rule.general]
    judged = _judged(specific, model)
    named = _names_input(judged)
    results = _with_hidden(specific, judged, model, named=named)
    left = unexplained(chart, results)
    if left is not None:
        chart.give(left)
    general = [
        (rule, _within(window.checked(_apply(rule, chart)), left)) for rule in rules if rule.general
    ]
    questions = [_question(result, model) for one in general for result in _judged([one], model)]
    results += _with_hidden(general, questions, model, named=named)
    rank = ResultRank(partial(_time_ms, beyond_ms=_beyond(chart)))
    if few:  # in the order of what they would save
        return tuple(_note(result) for result in sorted(results, key=rank))
    return tuple(sorted((_bounded(result, slow) for result in results), key=rank))


def _within(outcome: Outcome, left: Unexplained | None) -> Outcome:
    """Limit a general finding to the time that no specific one names."""
    if not isinstance(outcome, Finding) or left is None:
        return outcome
    own = [
        effect
        for effect in outcome.effects
        if effect.stage in left.parts_ms and effect.subject not in left.subjects
    ]
    named: dict[Stage, float] = dict.fromkeys(Stage, 0.0)
    for effect in own:
        named[effect.stage] += effect.of.value if effect.of else 0.0
    effects = tuple(
        replace(effect, of=ms(effect.of.value * _fits(left.parts_ms[effect.stage], named, effect)))
        if effect.of
        else effect
        for effect in own
    )
    if outcome.effects and not effects:
        return Healthy(summary=ALL_NAMED, evidence=outcome.evidence)
    return replace(outcome, effects=effects)


def _fits(left_ms: float, named: Mapping[Stage, float], effect: Effect) -> float:
    """Return the share of an effect's time that fits into what is left of its stage with the others."""
    return min(1.0, left_ms / named[effect.stage]) if named[effect.stage] else 1.0


ALL_NAMED = "The findings of other rules name the time that this rule would report"


def _question(result: Result, model: StepModel | None) -> Result:
    """Let a general finding state the time that it names, and no saving.

    A change may spare only a part of it, or other work as well, such as the gradients of an operation. A
    question is never critical.
    """
    saving = result.saving
    if saving is None or model is None or not isinstance(result.outcome, Finding):
        return result
    severity = min(result.severity or Severity.NOTE, Severity.WARNING)
    takes = _takes(result.outcome, model, saving.per_step.value)
    return replace(result, saving=None, takes=takes, severity=severity)


def _takes(finding: Finding, model: StepModel, saved_ms: float) -> Takes:
    """Return the time that the summary states; where it states none, what the effects spare."""
    time = finding.takes or ms(saved_ms)
    return Takes(time, time.value / model.step_ms)


def too_few_steps(chart: Chart) -> bool:
    """Return whether fewer steps were traced than a saving, or a severity above a note, can rest on."""
    steps = chart.get(Steps)
    return steps.too_few if steps else model_of(chart) is None


def _note(result: Result) -> Result:
    """Return a finding as a note without a saving of the step; one about the run needs no steps."""
    if not isinstance(result.outcome, Finding):
        return result
    about_run = result.outcome.concern is Concern.RUN
    severity = result.severity if about_run else Severity.NOTE
    return replace(result, severity=severity, saving=None)


def _bounded(result: Result, slow: SlowSteps | None) -> Result:
    """Rate a finding no higher than the steps allow that it rests on.

    One about the typical step is never critical where slow steps take most of the time: its share is that of the
    mean step.
    """
    if result.severity is None or slow is None or not slow.prevail or not _is_typical(result):
        return result
    amount = result.saving or result.takes
    share = amount.per_step.value / slow.mean_ms if amount else 1.0
    return replace(result, severity=min(result.severity, Severity.of(share), Severity.WARNING))


def _is_typical(result: Result) -> bool:
    """Whether a finding is about the time of a typical step."""
    concern = result.outcome.concern if isinstance(result.outcome, Finding) else None
    return concern is Concern.TYPICAL_STEP and result.rule.topic is not Topic.RECORDING


def _judged(outcomes: Sequence[tuple[Rule, Outcome]], model: StepModel | None) -> list[Result]:
    """Judge every outcome; again without the findings that save nothing, as long as there are any."""
    effects = {rule.name: o.effects for rule, o in outcomes if isinstance(o, Finding)}
    results = [_judge(rule, outcome, model, effects) for rule, outcome in outcomes]
    remaining = [(result.rule, result.outcome) for result in results]
    if sum(isinstance(outcome, Finding) for _, outcome in remaining) == len(effects):
        return results
    return _judged(remaining, model)


def together(chart: Chart, results: Iterable[Result]) -> Together | None:
    """Compute what all changes save combined; None when no finding has an effect.

    General findings are left out: they name where the time goes, and no change that saves it.
    """
    model = model_of(chart)
    findings = {
        result.rule.name: result.outcome.effects
        for result in results
        if isinstance(result.outcome, Finding)
        and result.outcome.effects
        and not result.rule.general
    }
    if model is None or model.distorted or not findings or too_few_steps(chart):
        return None
    findings = _needed(_causes(findings, model), model)
    effects = [effect for own_effects in findings.values() for effect in own_effects]
    saved = model.saving(effects)
    bound = Bound.AT_MOST if at_most(effects, model) else Bound.EXPECTED
    alone = sum(max(0.0, model.saving(own_effects)) for own_effects in findings.values())
    return Together(
        per_step=ms(saved),
        share=saved / model.step_ms,
        rules=tuple(findings),
        after_ms={str(part): value for part, value in model.predict_parts(effects).items()},
        bound=bound,
        more_than_alone=saved - alone >= WORTH_SAYING * model.step_ms,
    )


EXPLAINED = 0.5
"""Share of what a whole stage may save that findings about its parts save: then they are what to change."""


def _causes(
    findings: dict[str, tuple[Effect, ...]], model: StepModel
) -> dict[str, tuple[Effect, ...]]:
    """Leave out findings that bound a whole stage which others explain: they are no change of their own."""
    parts = {name: own for name, own in findings.items() if not all(e.is_ceiling for e in own)}

    def explained(own: tuple[Effect, ...]) -> bool:
        stages = {effect.stage for effect in own}
        of = [other for other in parts.values() if any(e.stage in stages for e in other)]
        saved = sum(max(0.0, model.saving(other)) for other in of)
        return bool(of) and saved >= EXPLAINED * model.saving(own)

    return {name: own for name, own in findings.items() if name in parts or not explained(own)}


def _needed(
    findings: dict[str, tuple[Effect, ...]], model: StepModel
) -> dict[str, tuple[Effect, ...]]:
    """Leave out findings that add nothing to the others, so that one change is not counted twice.

    Only findings that state an upper bound are left out: those about its causes say what to do.
    """
    needed = dict(findings)
    for name in sorted(findings, key=lambda name: -model.saving(findings[name])):
        others = [
            effect for rule, own_effects in needed.items() if rule != name for effect in own_effects
        ]
        added = model.predict(others) - model.predict([*others, *needed[name]])
        ceiling = any(effect.bound is Bound.AT_MOST for effect in needed[name])
        if others and ceiling and added < WORTH_SAYING * model.step_ms:
            del needed[name]
    return needed


def _apply(rule: Rule, chart: Chart) -> Outcome:
    try:
        return chart.call(rule.bound())
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))
    except ConfigError as error:  # a rule of the user's own: the sentence names its file
        return Errored(error=str(error), traceback=traceback.format_exc())
    except Exception as error:  # noqa: BLE001 - one broken rule must not silence the others
        return Errored(error=repr(error), traceback=traceback.format_exc())


def model_of(chart: Chart) -> StepModel | None:
    """Return the step model; without it findings stand, but none has a saving."""
    model = chart.get(StepModel)
    return model if model and model.step_ms else None


def _judge(
    rule: Rule, outcome: Outcome, model: StepModel | None, effects: dict[str, tuple[Effect, ...]]
) -> Result:
    """Give a finding its saving and severity; one that saves nothing worth saying is healthy."""
    if not isinstance(outcome, Finding) or not outcome.effects or model is None:
        severity = outcome.severity or Severity.NOTE if isinstance(outcome, Finding) else None
        return Result(rule=rule, outcome=outcome, severity=severity)
    saving = _saving(rule.name, model, effects)
    bounds = saving.bound is Bound.AT_MOST and not rule.general
    least = WORTH_A_BOUND if bounds else WORTH_SAYING
    if saving.share < least and not saving.after:
        if outcome.run_effects:  # its time is elsewhere in the run
            return Result(rule=rule, outcome=outcome, severity=outcome.severity or Severity.NOTE)
        little = f"{outcome.summary}; fixing it would save less than {percent(least)} of the step"
        return Result(rule=rule, outcome=Healthy(summary=little, evidence=outcome.evidence))
    if model.distorted:
        return _unpriced(rule, outcome, saving)
    severity = Severity.of(saving.share)
    if outcome.severity:
        severity = min(severity, outcome.severity) if rule.general else outcome.severity
    return Result(rule=rule, outcome=outcome, saving=saving, severity=severity)


def _names_input(results: Iterable[Result]) -> bool:
    """Whether a finding names work of the input, or the wait for it."""
    found = (result.outcome for result in results if isinstance(result.outcome, Finding))
    return any(effect.stage is Stage.INPUT for finding in found for effect in finding.effects)


def _with_hidden(
    outcomes: Iterable[tuple[Rule, Outcome]],
    results: Iterable[Result],
    model: StepModel | None,
    *,
    named: bool,
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
    if not isinstance(result.outcome, Healthy) or not _hides(model, outcome.effects):
        return result
    stages = dict.fromkeys(effect.stage for effect in outcome.effects)
    if result.rule.general and not named and not model.distorted:
        saved = model.saving_without_input(outcome.effects)
        saved = min(saved, sum(model.exposed[stage] for stage in stages))
        own = Severity.of(saved / model.step_ms)
        severity = min(own, outcome.severity or Severity.WARNING, Severity.WARNING)
        takes = _takes(outcome, model, saved)
        return replace(result, outcome=outcome, takes=takes, severity=severity)
    hidden = tuple(
        PartTime(stage, ms(model.traced[stage] if named else 0.0), _paced(model))
        for stage in stages
    )
    return replace(result, outcome=replace(result.outcome, necessary=hidden))


def _hides(model: StepModel, effects: tuple[Effect, ...]) -> bool:
    """Whether effects save nothing because of the input: without it they would save something."""
    worth = WORTH_SAYING * model.step_ms
    return model.saving(effects) < worth <= model.saving_without_input(effects)


def _paced(model: StepModel) -> str:
    """Say by what is measured that the input sets the pace of the step."""
    if model.waits:
        wait = milliseconds(model.exposed[Stage.INPUT])
        return f"The step waits {wait} for input: less of this work would lengthen the wait, not shorten the step"
    return (
        f"The input pipeline works {milliseconds(model.slowest)} for the batch of a step of "
        f"{milliseconds(model.step_ms)}, so less of this work would not shorten the step"
    )


def _unpriced(rule: Rule, outcome: Finding, saving: Saving) -> Result:
    """Return a finding without a saving, where tracing distorts the step; a small one as not applicable."""
    if Severity.of(saving.share) >= Severity.WARNING or outcome.run_effects:
        return Result(rule=rule, outcome=outcome, severity=Severity.NOTE)
    reason = (
        f"{outcome.summary}, but tracing slows this step so much that a share this small "
        "is not reliable"
    )
    return Result(rule=rule, outcome=NotApplicable(reason=reason))


def _saving(name: str, model: StepModel, effects: dict[str, tuple[Effect, ...]]) -> Saving:
    own_effects = (*effects[name], *relief(name, effects))
    alone = model.saving(own_effects)
    alone = alone if abs(alone) > ROUNDING * model.step_ms else 0.0
    bound = Bound.AT_MOST if at_most(own_effects, model) else Bound.EXPECTED
    saving = Saving(
        per_step=ms(alone),
        share=alone / model.step_ms,
        bound=bound,
        how=_how(effects[name], model, alone) + _beyond_wait(own_effects, model, alone),
    )
    if saving.share >= WORTH_SAYING:
        return saving
    return _hidden(name, model, effects, saving)


def relief(name: str, effects: Mapping[str, tuple[Effect, ...]]) -> tuple[Effect, ...]:
    """Return what a bound of a whole stage spares of others, by what findings about parts of that stage state.

    Without it a part could save more than the whole.
    """
    own = effects[name]
    if not own or not all(effect.is_ceiling for effect in own):
        return ()
    stages = {effect.stage for effect in own}
    parts = (e for e in effects.values() if any(effect.stage in stages for effect in e))
    beside = (effect for part in parts for effect in part if effect.stage not in stages)
    return tuple(effect for effect in beside if effect.subject in RELIEVED)


RELIEVED = {"", StepWork.INTERPRETER}
"""Subjects of effects on stages that only share cores, or the interpreter, with the work that is changed."""


def _hidden(
    name: str, model: StepModel, effects: dict[str, tuple[Effect, ...]], alone: Saving
) -> Saving:
    """Return the saving with the finding that hides it, or all findings where only all together do.

    Until they are fixed, it is small or nothing.

    It is compared to the step that remains after those fixes: half of 70 ms of compute is a lot then,
    but little while the step waits a minute for its input.
    """
    others = {rule: e for rule, e in effects.items() if rule != name and e}
    before = [effect for own_effects in others.values() for effect in own_effects]
    later, matters = _gain(model, before, effects[name])
    if not matters:
        return alone
    enough = (
        rule for rule, own_effects in others.items() if _gain(model, own_effects, effects[name])[1]
    )
    best = min(enough, key=lambda rule: _preference(others[rule], model), default=None)
    little = "little" if alone.per_step.value > 0 else "nothing"
    how = (
        f"{alone.how} Saves {little} alone; {milliseconds(later)} once all other findings are fixed."
        + (f" {_paced(model)}." if _hides(model, effects[name]) else "")
    )
    return replace(alone, how=how, after=(best,) if best else tuple(others))


def _preference(effects: tuple[Effect, ...], model: StepModel) -> tuple[bool, float]:
    """Put a finding that names a cause before one that bounds the whole stage, then the larger saving."""
    return all(effect.is_ceiling for effect in effects), -model.saving(effects)


def _gain(
    model: StepModel, before: Iterable[Effect], own_effects: Iterable[Effect]
) -> tuple[float, bool]:
    """Return the ms that effects save after others, and whether that is worth reporting."""
    left = model.predict(before)
    saved = left - model.predict([*before, *own_effects])
    return saved, saved >= max(WORTH_SAYING * left, ROUNDING * model.step_ms)


def at_most(effects: Iterable[Effect], model: StepModel) -> bool:
    """Whether a saving is an upper bound: an effect states one, or needs cores that may not be free.

    A step that the model explains only in part may save more as well as less: that makes no upper bound.
    """
    effects = tuple(effects)
    stated = any(effect.bound is Bound.AT_MOST for effect in effects)
    return stated or model.guesses_cores(effects)


def _how(effects: tuple[Effect, ...], model: StepModel, saved: float) -> str:
    """Describe how the step model computed a saving."""
    stages = sorted({effect.stage for effect in effects})
    parts = ", ".join(_stage_change(stage, effects) for stage in stages)
    text = (
        f"Starting from {_start(model)}, the step model {parts} "
        f"and predicts {milliseconds(model.step_ms - saved)}."
    )
    if model.tracing:
        text += " The profiler's cost is an estimate, and so is this."
    elif not model.trusted:
        text += (
            f" The model leaves {percent(abs(model.residual) / model.step_ms)} of the measured step unexplained, "
            "so this is an estimate."
        )
    if model.frees_cores(effects):
        text += " Cores that become free may speed up the rest as well, which is not counted."
    return text


def _beyond_wait(effects: Sequence[Effect], model: StepModel, saved: float) -> str:
    """Explain the part of a saving of input work that is more than the wait for input; "" where it is no more."""
    wait, least = model.exposed[Stage.INPUT], WORTH_SAYING * model.step_ms
    beside = [effect for effect in effects if effect.stage is not Stage.INPUT]
    relieved = all(effect.subject in RELIEVED for effect in beside)
    if saved - wait < least or len(beside) == len(effects) or not relieved:
        return ""
    others = [effect for effect in effects if effect.subject != StepWork.INTERPRETER]
    with_cores, alone = model.saving(others), model.saving_on_own_cores(others)
    parts = {FREE_LOOP: saved - with_cores, FREE_CORES: with_cores - alone, COST: alone - wait}
    added = [f"{milliseconds(part)} because {why}" for why, part in parts.items() if part >= least]
    return (
        f" Of the saving, {milliseconds(min(wait, alone))} are the wait for input; "
        f"added to this are up to {', and up to '.join(added)}."
    )


FREE_LOOP = "Python of the input no longer keeps the training loop from the interpreter"
FREE_CORES = "work of the input leaves its cores to the rest of the step"
COST = "the rest of the step may have the profiler's cost"


def _start(model: StepModel) -> str:
    """Return the step that a saving is of: as measured, or without the profiler's cost."""
    if model.tracing is None:
        return f"the measured step of {milliseconds(model.step_ms)}"
    traced = milliseconds(sum(model.traced.values()))
    return (
        f"the untraced step of {milliseconds(model.step_ms)} (the {traced} of the traced step, to which the "
        "evidence refers, without the profiler's cost)"
    )


def _stage_change(stage: Stage, effects: tuple[Effect, ...]) -> str:
    own_effects = [effect for effect in effects if effect.stage is stage]
    if any(effect.overlaps for effect in own_effects):
        return f"overlaps the {stage} work with the rest of the step"
    subjects = {effect.subject for effect in own_effects if effect.subject}
    if not subjects:
        return _scaled(stage, own_effects)
    return f"changes {counted(len(subjects), 'part')} of the {stage} work"


def _scaled(stage: Stage, effects: Sequence[Effect]) -> str:
    """Say what effects on a whole stage do to it, and why."""
    less = 1.0 - math.prod(effect.scales for effect in effects)
    why = "".join(f" ({effect.why})" for effect in effects if effect.why)
    if less >= 1.0:
        return f"removes the {stage} work{why}"
    return f"{'shortens' if less >= 0.0 else 'lengthens'} the {stage} work by {percent(abs(less))}{why}"


def _beyond(chart: Chart) -> float:
    """Return what long steps add to the mean training step, in ms."""
    steps = chart.get(Steps)
    if steps is None or not steps.median_ms:
        return 0.0
    whole = sum(step.total_ms * step.calls for step in steps.steps)
    return max(0.0, whole / sum(step.calls for step in steps.steps) - steps.median_ms)


def _time_ms(result: Result, beyond_ms: float) -> float:
    """Return the time of a step that a result is about; of long steps what they add to the mean step."""
    amount = result.saving or result.takes
    if amount:
        return amount.per_step.value
    of_long = isinstance(result.outcome, Finding) and result.outcome.concern is Concern.LONG_STEPS
    return beyond_ms if of_long else 0.0
