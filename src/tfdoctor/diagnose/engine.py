"""Applies rules to a recording, in two rounds. Knows no particular rule and no renderer."""

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from tfdoctor.diagnose.accounts import unexplained
from tfdoctor.diagnose.judging import judged, names_input, question, with_hidden
from tfdoctor.diagnose.rank import ResultRank
from tfdoctor.diagnose.saving_words import ALL_NAMED
from tfdoctor.diagnose.savings import model_of, too_few_steps
from tfdoctor.diagnose.window import only_traced
from tfdoctor.diagnosis import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Concern,
    Effect,
    Errored,
    Finding,
    Healthy,
    NotApplicable,
    Outcome,
    Severity,
    Stage,
)


def examine(chart: Chart, rules: Iterable[Rule]) -> tuple[Result, ...]:
    """Apply every rule; a failure of one does not affect the others. The most severe finding comes first.

    First the specific rules, then the general ones, which get what the findings so far leave unexplained.
    """
    rules, model, window = tuple(rules), model_of(chart), only_traced(chart)
    said = [(rule, window.checked(_apply(rule, chart))) for rule in rules if not rule.general]
    specific = judged(said, model)
    named = names_input(specific)
    results = with_hidden(said, specific, model, named=named)
    left = unexplained(chart, results)
    asked = [
        (rule, _within(window.checked(_apply(rule, chart, left)), left))
        for rule in rules
        if rule.general
    ]
    general = [question(result, model) for one in asked for result in judged([one], model)]
    results += with_hidden(asked, general, model, named=named)
    return _ranked(chart, results)


def _ranked(chart: Chart, results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results in order; of few steps each finding is a note, in the order of what it would save."""
    rank = ResultRank(partial(_time_ms, beyond_ms=_beyond(chart)))
    if too_few_steps(chart):
        return tuple(_note(result) for result in sorted(results, key=rank))
    slow = chart.get(SlowSteps)
    return tuple(sorted((_bounded(result, slow) for result in results), key=rank))


def _apply(rule: Rule, chart: Chart, left: Unexplained | None = None) -> Outcome:
    try:
        return rule.apply(chart, *([] if left is None else [left]))
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))
    except ConfigError as error:  # a rule of the user's own: the sentence names its file
        return Errored(error=str(error), traceback=traceback.format_exc())
    except Exception as error:  # noqa: BLE001 - one broken rule must not silence the others
        return Errored(error=repr(error), traceback=traceback.format_exc())


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
