"""What changes save of the step, alone, together and after each other, by the step model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnose import saving_words as words
from tfdoctor.diagnosis import Result, Saving, Together
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Stage, StepWork

WORTH_SAYING = 0.005  # Share of the step. A change that saves less is not worth the time to read about it.
ROUNDING = 1e-6  # Share of the step. A smaller difference is floating-point rounding, not the effect of a change.
# Share of what a whole stage may save that findings about its parts save: then they are what to change.
EXPLAINED = 0.5
# Subjects of effects on stages that only share cores, or the interpreter, with the work that is changed.
RELIEVED = {"", StepWork.INTERPRETER}


def together(chart: Chart, results: Iterable[Result]) -> Together | None:
    """Compute what all changes save combined; None when no finding has an effect.

    General findings are left out: they name where the time goes, and no change that saves it.
    """
    model = model_of(chart)
    findings = {
        result.rule.name: result.outcome.effects
        for result in results
        if isinstance(result.outcome, Finding) and result.outcome.effects and not result.rule.general
    }
    if model is None or model.distorted or not findings or too_few_steps(chart):
        return None
    doubtful = in_doubt(model, (effect for own in findings.values() for effect in own))
    model = model.without_input if doubtful else model
    findings = _needed(_causes(findings, model), model)
    effects = [effect for own_effects in findings.values() for effect in own_effects]
    saved = model.saving(effects)
    bound = Bound.AT_MOST if doubtful or at_most(effects, model) else Bound.EXPECTED
    alone = sum(max(0.0, model.saving(own_effects)) for own_effects in findings.values())
    return Together(
        per_step=ms(saved),
        share=saved / model.step_ms,
        rules=tuple(findings),
        after_ms={str(part): value for part, value in model.predict_parts(effects).items()},
        bound=bound,
        more_than_alone=saved - alone >= WORTH_SAYING * model.step_ms,
    )


def _causes(findings: dict[str, tuple[Effect, ...]], model: StepModel) -> dict[str, tuple[Effect, ...]]:
    """Leave out findings that bound a whole stage which others explain: they are no change of their own."""
    parts = {name: own for name, own in findings.items() if not all(e.is_ceiling for e in own)}

    def explained(own: tuple[Effect, ...]) -> bool:
        stages = {effect.stage for effect in own}
        of = [other for other in parts.values() if any(e.stage in stages for e in other)]
        saved = sum(max(0.0, model.saving(other)) for other in of)
        return bool(of) and saved >= EXPLAINED * model.saving(own)

    return {name: own for name, own in findings.items() if name in parts or not explained(own)}


def _needed(findings: dict[str, tuple[Effect, ...]], model: StepModel) -> dict[str, tuple[Effect, ...]]:
    """Leave out findings that add nothing to the others, so that one change is not counted twice.

    Only findings that state an upper bound are left out: those about its causes say what to do.
    """
    needed = dict(findings)
    for name in sorted(findings, key=lambda name: -model.saving(findings[name])):
        others = [effect for rule, own_effects in needed.items() if rule != name for effect in own_effects]
        added = model.predict(others) - model.predict([*others, *needed[name]])
        ceiling = any(effect.bound is Bound.AT_MOST for effect in needed[name])
        if others and ceiling and added < WORTH_SAYING * model.step_ms:
            del needed[name]
    return needed


def too_few_steps(chart: Chart) -> bool:
    """Return whether fewer steps were traced than a saving, or a severity above a note, can rest on."""
    steps = chart.get(Steps)
    return steps.too_few if steps else model_of(chart) is None


def model_of(chart: Chart) -> StepModel | None:
    """Return the step model; without it findings stand, but none has a saving."""
    model = chart.get(StepModel)
    return model if model and model.step_ms else None


def saving_of(name: str, model: StepModel, effects: dict[str, tuple[Effect, ...]]) -> Saving:
    """Return what the change of a finding saves, by the effects of all findings by their rules."""
    if in_doubt(model, effects[name]):
        return _without_input(model, effects[name])
    own_effects = (*effects[name], *relief(name, effects))
    alone = model.saving(own_effects)
    alone = alone if abs(alone) > ROUNDING * model.step_ms else 0.0
    bound = Bound.AT_MOST if at_most(own_effects, model) else Bound.EXPECTED
    saving = Saving(
        per_step=ms(alone),
        share=alone / model.step_ms,
        bound=bound,
        how=words.how(effects[name], model, alone) + _beyond_wait(own_effects, model, alone),
    )
    if saving.share >= WORTH_SAYING:
        return saving
    return _hidden(name, model, effects, saving)


def _beyond_wait(effects: Sequence[Effect], model: StepModel, saved: float) -> str:
    """Explain the part of a saving of input work that is more than the wait for input; "" where it is no more."""
    wait, least = model.exposed[Stage.INPUT], WORTH_SAYING * model.step_ms
    beside = [effect for effect in effects if effect.stage is not Stage.INPUT]
    relieved = all(effect.subject in RELIEVED for effect in beside)
    if saved - wait < least or len(beside) == len(effects) or not relieved:
        return ""
    others = [effect for effect in effects if effect.subject != StepWork.INTERPRETER]
    with_cores, alone = model.saving(others), model.saving_on_own_cores(others)
    parts = {words.FREE_LOOP: saved - with_cores, words.FREE_CORES: with_cores - alone, words.COST: alone - wait}
    large = {why: part for why, part in parts.items() if part >= least}
    return words.beyond_wait(min(wait, alone), large)


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


def in_doubt(model: StepModel, effects: Iterable[Effect]) -> bool:
    """Whether effects on the rest of the step may save more than they seem to: the input may keep up untraced."""
    effects = tuple(effects)
    if not model.doubts_input or any(effect.stage is Stage.INPUT for effect in effects):
        return False
    more = model.without_input.saving(effects) - model.saving(effects)
    return more >= WORTH_SAYING * model.step_ms


def _without_input(model: StepModel, effects: tuple[Effect, ...]) -> Saving:
    """Return what effects save if the input keeps up without tracing, which is not known: at most this."""
    saved = model.without_input.saving(effects)
    how = words.how(effects, model, saved)
    return Saving(
        per_step=ms(saved), share=saved / model.step_ms, bound=Bound.AT_MOST, how=f"{how} {words.paced(model)}."
    )


def _hidden(name: str, model: StepModel, effects: dict[str, tuple[Effect, ...]], alone: Saving) -> Saving:
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
    enough = (rule for rule, own_effects in others.items() if _gain(model, own_effects, effects[name])[1])
    best = min(
        enough,
        key=lambda rule: (
            # One that names a cause before one that bounds the whole stage, then the larger saving.
            all(effect.is_ceiling for effect in others[rule]),
            -model.saving(others[rule]),
        ),
        default=None,
    )
    told = words.after_others(alone.per_step.value, later)
    how = f"{alone.how} {told}" + (f" {words.paced(model)}." if hides(model, effects[name]) else "")
    return replace(alone, how=how, after=(best,) if best else tuple(others))


def _gain(model: StepModel, before: Iterable[Effect], own_effects: Iterable[Effect]) -> tuple[float, bool]:
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


def hides(model: StepModel, effects: tuple[Effect, ...]) -> bool:
    """Whether effects save nothing because of the input: without it they would save something."""
    worth = WORTH_SAYING * model.step_ms
    return model.saving(effects) < worth <= model.without_input.saving(effects)
