"""The sentences of a saving: how the step model computed it, and why there is none."""

import math
from collections.abc import Mapping

from tfdoctor.facts.savings.step_model import ELEMENT_MS, StepModel
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.verdict import Effect, Stage

ALL_NAMED = "The findings of other rules name the time that this rule would report"

FREE_LOOP = "Python of the input no longer keeps the training loop from the interpreter"
FREE_CORES = "work of the input leaves its cores to the rest of the step"
COST = "the rest of the step may have the profiler's cost"


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


def how(effects: tuple[Effect, ...], model: StepModel, saved: float) -> str:
    """Describe how the step model computed a saving."""
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


def beyond_wait(wait_ms: float, parts: Mapping[str, float]) -> str:
    """Explain the parts of a saving of input work, in ms by their reason, that are more than the wait for input."""
    added = [f"{milliseconds(part)} because {why}" for why, part in parts.items()]
    return (
        f" Of the saving, {milliseconds(wait_ms)} are the wait for input; "
        f"added to this are up to {', and up to '.join(added)}."
    )


def after_others(saved_ms: float, later_ms: float) -> str:
    """Say what a change saves alone, and after all others."""
    little = "little" if saved_ms > 0 else "nothing"
    return f"Saves {little} alone; {milliseconds(later_ms)} once all other findings are fixed."


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
