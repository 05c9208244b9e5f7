"""What changes save of the step, alone, together and after each other, by the step model; and in which words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Saving, Together
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.step_model import ELEMENT_MS, StepModel
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.verdict import Bound, Effect, Stage, StepWork

WORTH_SAYING = 0.005  # Share of the step. A change that saves less is not worth the time to read about it.
ROUNDING = 1e-6  # Share of the step. A smaller difference is floating-point rounding, not the effect of a change.
# Share of what a whole stage may save that findings about its parts save: then they are what to change.
EXPLAINED = 0.5
# Subjects of effects on stages that only share cores, or the interpreter, with the work that is changed.
RELIEVED = {"", StepWork.INTERPRETER}

ALL_NAMED = "The findings of other rules name the time that this rule would report"

FREE_LOOP = "Python of the input no longer keeps the training loop from the interpreter"
FREE_CORES = "work of the input leaves its cores to the rest of the step"
COST = "the rest of the step may have the profiler's cost"

Effects = Mapping[str, tuple[Effect, ...]]  # those of findings, by their rules


def together(chart: Chart, results: Iterable[Result]) -> Together | None:
    """Compute what all changes save combined; None when no finding has an effect.

    General findings are left out: they name where the time goes, and no change that saves it.
    """
    model = model_of(chart)
    specific = (result for result in results if result.effects and not result.rule.general)
    findings: Effects = {result.rule.name: result.effects for result in specific}
    if model is None or model.distorted or not findings or too_few_steps(chart):
        return None
    doubtful = in_doubt(model, [effect for own in findings.values() for effect in own])
    model = model.without_input if doubtful else model
    findings = _needed(_causes(findings, model), model)
    effects = [effect for own_effects in findings.values() for effect in own_effects]
    saved = model.saving(effects)
    alone = sum(max(0.0, model.saving(own_effects)) for own_effects in findings.values())
    return Together(
        ms_per_step=saved,
        share=saved / model.step_ms,
        rules=tuple(findings),
        after_ms={str(part): value for part, value in model.predict_parts(effects).items()},
        bound=Bound.AT_MOST if doubtful else bound_of(effects, model),
        more_than_alone=saved - alone >= WORTH_SAYING * model.step_ms,
    )


def bounds_stage(effects: Iterable[Effect]) -> bool:
    """Whether a finding bounds the cost of a whole stage, and says nothing of what takes the time in it."""
    return all(effect.is_ceiling for effect in effects)


def about_same(own: Iterable[Effect], findings: Effects) -> Effects:
    """Return the findings with an effect on a stage that these effects are about."""
    stages = {effect.stage for effect in own}
    return {name: theirs for name, theirs in findings.items() if any(e.stage in stages for e in theirs)}


def _causes(findings: Effects, model: StepModel) -> Effects:
    """Leave out findings that bound a whole stage which others explain: they are no change of their own."""
    parts = {name: own for name, own in findings.items() if not bounds_stage(own)}

    def explained(own: tuple[Effect, ...]) -> bool:
        of = about_same(own, parts).values()
        saved = sum(max(0.0, model.saving(other)) for other in of)
        return bool(of) and saved >= EXPLAINED * model.saving(own)

    return {name: own for name, own in findings.items() if name in parts or not explained(own)}


def _needed(findings: Effects, model: StepModel) -> Effects:
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


def saving_of(name: str, model: StepModel, effects: Effects) -> Saving:
    """Return what the change of a finding saves, by the effects of all findings by their rules."""
    own = effects[name]
    if in_doubt(model, own):  # at most what it saves if the input keeps up without tracing, which is not known
        saved = model.without_input.saving(own)
        how = f"{_how(own, model, saved)} {paced(model)}."
        return Saving(ms_per_step=saved, share=saved / model.step_ms, bound=Bound.AT_MOST, how=how)
    with_relief = (*own, *relief(name, effects))
    alone = model.saving(with_relief)
    alone = alone if abs(alone) > ROUNDING * model.step_ms else 0.0
    saving = Saving(
        ms_per_step=alone,
        share=alone / model.step_ms,
        bound=bound_of(with_relief, model),
        how=_how(own, model, alone) + _beyond_wait(with_relief, model, alone),
    )
    return saving if saving.share >= WORTH_SAYING else _hidden(name, model, effects, saving)


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
    added = (f"{milliseconds(part)} because {why}" for why, part in parts.items() if part >= least)
    return (
        f" Of the saving, {milliseconds(min(wait, alone))} are the wait for input; "
        f"added to this are up to {', and up to '.join(added)}."
    )


def relief(name: str, effects: Effects) -> tuple[Effect, ...]:
    """Return what a bound of a whole stage spares of others, by what findings about parts of that stage state.

    Without it a part could save more than the whole.
    """
    own = effects[name]
    if not own or not bounds_stage(own):
        return ()
    stages = {effect.stage for effect in own}
    beside = (effect for part in about_same(own, effects).values() for effect in part if effect.stage not in stages)
    return tuple(effect for effect in beside if effect.subject in RELIEVED)


def in_doubt(model: StepModel, effects: Sequence[Effect]) -> bool:
    """Whether effects on the rest of the step may save more than they seem to: the input may keep up untraced."""
    if not model.doubts_input or any(effect.stage is Stage.INPUT for effect in effects):
        return False
    more = model.without_input.saving(effects) - model.saving(effects)
    return more >= WORTH_SAYING * model.step_ms


def _hidden(name: str, model: StepModel, effects: Effects, alone: Saving) -> Saving:
    """Return the saving with the finding that hides it, or all findings where only all together do.

    Until they are fixed, it is small or nothing. It is compared to the step that remains after those fixes: half
    of 70 ms of compute is a lot then, but little while the step waits a minute for its input.
    """

    def gain(before: Sequence[Effect]) -> tuple[float, bool]:
        left = model.predict(before)
        saved = left - model.predict([*before, *effects[name]])
        return saved, worth(saved, left, model)

    others = {rule: e for rule, e in effects.items() if rule != name and e}
    later, matters = gain([effect for own_effects in others.values() for effect in own_effects])
    if not matters:
        return alone
    best = min(
        (rule for rule, own_effects in others.items() if gain(own_effects)[1]),
        # One that names a cause before one that bounds the whole stage, then the larger saving.
        key=lambda rule: (bounds_stage(others[rule]), -model.saving(others[rule])),
        default=None,
    )
    little = "little" if alone.ms_per_step > 0 else "nothing"
    how = f"{alone.how} Saves {little} alone; {milliseconds(later)} once all other findings are fixed."
    how += f" {paced(model)}." if hides(model, effects[name]) else ""
    return replace(alone, how=how, after=(best,) if best else tuple(others))


def worth(saved: float, of: float, model: StepModel) -> bool:
    """Whether ms that a change saves of a step of so many ms are worth reporting."""
    return saved >= max(WORTH_SAYING * of, ROUNDING * model.step_ms)


def bound_of(effects: Sequence[Effect], model: StepModel) -> Bound:
    """Return whether a saving is an upper bound: an effect states one, or needs cores that may not be free.

    A step that the model explains only in part may save more as well as less: that makes no upper bound.
    """
    stated = any(effect.bound is Bound.AT_MOST for effect in effects)
    return Bound.AT_MOST if stated or model.guesses_cores(effects) else Bound.EXPECTED


def hides(model: StepModel, effects: Sequence[Effect]) -> bool:
    """Whether effects save nothing because of the input: without it they would save something."""
    worth_ms = WORTH_SAYING * model.step_ms
    return model.saving(effects) < worth_ms <= model.without_input.saving(effects)


def paced(model: StepModel) -> str:
    """Say by what is measured that the input sets the pace of the step, or may only seem to."""
    if model.doubts_input:
        elements, added = counted(round(model.elements), "element"), ELEMENT_MS * model.elements
        return (
            f"Traced, the input pipeline works {milliseconds(model.slowest)} for a step of "
            f"{milliseconds(model.step_ms)}. Tracing its {elements} may add {milliseconds(added)}, and without "
            "that it keeps up: this recording cannot tell whether less of this work would shorten the step"
        )
    if model.waits:
        wait = milliseconds(model.exposed[Stage.INPUT])
        return f"The step waits {wait} for input: less of this work would lengthen the wait, not shorten the step"
    return (
        f"The input pipeline works {milliseconds(model.slowest)} for the batch of a step of "
        f"{milliseconds(model.step_ms)}, so less of this work would not shorten the step"
    )


def _how(effects: tuple[Effect, ...], model: StepModel, saved: float) -> str:
    stages = sorted({effect.stage for effect in effects})
    parts = ", ".join(_stage_change(stage, effects) for stage in stages)
    start = f"the measured step of {milliseconds(model.step_ms)}"
    if model.tracing is not None:
        start = (
            f"the untraced step of {milliseconds(model.step_ms)} (the {milliseconds(sum(model.traced.values()))} "
            "of the traced step, to which the evidence refers, without the profiler's cost)"
        )
    text = f"Starting from {start}, the step model {parts} and predicts {milliseconds(model.step_ms - saved)}."
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


def too_little(summary: str, least: float, of: str = "step") -> str:
    """Say of a finding that its change saves less than a share of the step, or of the run."""
    return f"{summary}; fixing it would save less than {percent(least)} of the {of}"


def _stage_change(stage: Stage, effects: tuple[Effect, ...]) -> str:
    own_effects = [effect for effect in effects if effect.stage is stage]
    if any(effect.overlaps for effect in own_effects):
        return f"overlaps the {stage} work with the rest of the step"
    if subjects := {effect.subject for effect in own_effects if effect.subject}:
        return f"changes {counted(len(subjects), 'part')} of the {stage} work"
    less = 1.0 - math.prod(effect.scales for effect in own_effects)
    why = "".join(f" ({effect.why})" for effect in own_effects if effect.why)
    if less >= 1.0:
        return f"removes the {stage} work{why}"
    return f"{'shortens' if less >= 0.0 else 'lengthens'} the {stage} work by {percent(abs(less))}{why}"
