"""Applies rules to a recording, in two rounds, and judges what they find. Knows no particular rule, no renderer."""

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from tfdoctor.diagnose import savings
from tfdoctor.diagnose.accounts import unexplained
from tfdoctor.diagnose.rating import RunPricing, rated
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.savings import Takes
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.savings.given import Unexplained
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Errored,
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

# Share of a part's time that few of the traced steps have, from which the typical traced step shows no fault in it;
# and share of that which other steps have at least, if it is the run's.
MOSTLY = 0.5
TIMES = 2  # Times the traced steps that the run's other steps are at least, to say that they lack something
UNEVEN = 0.02  # Share of the step that a part takes beyond its median, below which steps differ for no reason


def examine(chart: Chart, rules: Iterable[Rule], run: RunPricing | None = None) -> tuple[Result, ...]:
    """Apply every rule; a failure of one does not affect the others. The most severe finding comes first.

    First the specific rules, then the general ones, which get what the findings so far leave unexplained. ``run``
    prices by the run, where that is known whole. The verdict, the savings and the severity of a result are final:
    later stages add fields, and what all changes are worth to the evidence of rules about money.
    """
    rules, model, window = tuple(rules), savings.model_of(chart), only_traced(chart)
    said = [(rule, window.checked(_apply(rule, chart))) for rule in rules if not rule.general]
    specific = _judged(said, model)
    named = any(effect.stage is Stage.INPUT for one in specific for effect in one.effects)
    results = [*_with_hidden(said, specific, model, named=named)]
    left = unexplained(chart, results)
    asked = [(rule, _within(left, window.checked(_apply(rule, chart, left)))) for rule in rules if rule.general]
    general = [_timed(result, model) for one in asked for result in _judged([one], model)]
    return rated(chart, [*results, *_with_hidden(asked, general, model, named=named)], run)


def _apply(rule: Rule, chart: Chart, left: Unexplained | None = None) -> Outcome:
    try:
        return rule.counted(rule.apply(chart, *([] if left is None else [left])))
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))
    except ConfigError as error:  # a rule of the user's own: the sentence names its file
        return Errored(error=str(error), traceback=traceback.format_exc())
    except MemoryError:  # no defect of a rule
        raise
    except Exception as error:  # noqa: BLE001 - one broken rule must not silence the others
        return Errored(error=repr(error), traceback=traceback.format_exc())


def _judged(outcomes: Sequence[tuple[Rule, Outcome]], model: StepModel | None) -> list[Result]:
    """Judge every outcome; again without the findings that save nothing, as long as there are any."""
    effects = {rule.name: o.effects for rule, o in outcomes if isinstance(o, Finding)}
    results = [_judge(rule, outcome, model, effects) for rule, outcome in outcomes]
    remaining = [(result.rule, result.outcome) for result in results]
    if sum(isinstance(outcome, Finding) for _, outcome in remaining) == len(effects):
        return results
    return _judged(remaining, model)


def _judge(rule: Rule, outcome: Outcome, model: StepModel | None, effects: savings.Effects) -> Result:
    """Give a finding its saving and severity; one that saves nothing worth saying is healthy."""
    if not isinstance(outcome, Finding):
        return Result(rule=rule, outcome=outcome)
    unpriced = Result(rule=rule, outcome=outcome, severity=outcome.severity or Severity.NOTE)
    if not outcome.effects or model is None:
        return unpriced
    saving = savings.saving_of(rule.name, model, effects)
    least = WORTH_A_BOUND if saving.bound is Bound.AT_MOST and not rule.general else savings.WORTH_SAYING
    if saving.share < least and not saving.after:
        if outcome.run_effects:  # its time is elsewhere in the run
            return unpriced
        little = savings.too_little(outcome.summary, least)
        return Result(rule=rule, outcome=Healthy(summary=little, evidence=outcome.evidence))
    severity = Severity.of(saving.share)
    if model.distorted:
        reason = f"{outcome.summary}, but tracing slows this step so much that a share this small is not reliable"
        large = severity >= Severity.WARNING or outcome.run_effects
        unknown = Result(rule=rule, outcome=NotApplicable(reason=reason))
        return Result(rule=rule, outcome=outcome, severity=Severity.NOTE) if large else unknown
    if outcome.severity:
        severity = (min if rule.general else max)(severity, outcome.severity)
    return Result(rule=rule, outcome=outcome, saving=saving, severity=severity)


def _within(left: Unexplained | None, outcome: Outcome) -> Outcome:
    """Limit a general finding to the time that no specific one names."""
    if not isinstance(outcome, Finding) or left is None:
        return outcome
    own = [one for one in outcome.effects if one.stage in left.parts_ms and one.subject not in left.subjects]
    if outcome.effects and not own:
        return Healthy(summary=savings.ALL_NAMED, evidence=outcome.evidence)
    named = dict.fromkeys(Stage, 0.0)
    for effect in own:
        named[effect.stage] += effect.of.value if effect.of else 0.0
    fits = {stage: min(1.0, left.parts_ms[stage] / time) for stage, time in named.items() if time}
    effects = (
        replace(effect, of=ms(effect.of.value * fits.get(effect.stage, 1.0))) if effect.of else effect
        for effect in own
    )
    return replace(outcome, effects=tuple(effects))


def _timed(result: Result, model: StepModel | None) -> Result:
    """Let a general finding state the time that it names, and no saving.

    A change may spare only a part of it, or other work as well, such as the gradients of an operation. Its severity
    follows the time.
    """
    if result.saving is None or result.finding is None or model is None:
        return result
    return replace(result, saving=None, takes=_takes(result.finding, model, result.saving.ms_per_step))


def _takes(finding: Finding, model: StepModel, saved_ms: float) -> Takes:
    """Return the time that the summary states; where it states none, what the effects spare."""
    time_ms = finding.takes.value if finding.takes else saved_ms
    return Takes(time_ms, time_ms / model.step_ms)


def _with_hidden(
    outcomes: Iterable[tuple[Rule, Outcome]], results: Iterable[Result], model: StepModel | None, *, named: bool
) -> Iterator[Result]:
    """Say of findings that save nothing where the input takes as long as the rest of the step.

    ``outcomes`` are those of the ``results``, in the same order, before they were judged. The time of such a
    finding is necessary only as long as the input is: where no finding names the input, its time stays
    unexplained, and a general finding stands, since it states time and no saving.
    """
    for result, (_, outcome) in zip(results, outcomes, strict=True):
        healthy = result.outcome
        if not (
            isinstance(outcome, Finding)
            and isinstance(healthy, Healthy)
            and model
            and savings.hides(model, outcome.effects)
        ):
            yield result
            continue
        stages = dict.fromkeys(effect.stage for effect in outcome.effects)
        if result.rule.general and not named and not model.distorted:
            saved = model.without_input.saving(outcome.effects)
            saved = min(saved, sum(model.exposed[stage] for stage in stages))
            own, takes = Severity.of(saved / model.step_ms), _takes(outcome, model, saved)
            yield replace(result, outcome=outcome, takes=takes, severity=min(own, outcome.severity or own))
        else:
            times = {stage: ms(model.traced[stage] if named else 0.0) for stage in stages}
            hidden = tuple(PartTime(stage, time, savings.paced(model)) for stage, time in times.items())
            yield replace(result, outcome=replace(healthy, necessary=hidden))


class OnlyTraced(Record):
    """The parts whose time few traced steps have and the other steps lack: ms that these add to a traced step.

    The profiler starts and ends in the traced window, and a window of 20 steps may hold one long wait by chance. A
    finding about such time would be one about the recording, not about the run.
    """

    parts_ms: Mapping[str, float] = field(default_factory=dict)
    beyond_ms: float = 0.0  # what long steps add to each of the other steps

    def checked(self, outcome: Outcome) -> Outcome:
        """Return an outcome; a finding about these parts alone is not one about the run."""
        if not isinstance(outcome, Finding) or outcome.run_effects or not outcome.effects:
            return outcome
        stages = {effect.stage for effect in outcome.effects}
        if not stages <= self.parts_ms.keys():
            return outcome
        added = milliseconds(max(self.parts_ms[stage] for stage in stages))
        return NotApplicable(
            reason=f"{outcome.summary}, but only the traced steps show it: few of them take this time, which adds "
            f"{added} to each, and in the other steps of the run everything that varies adds "
            f"{milliseconds(self.beyond_ms)}"
        )


def only_traced(chart: Chart) -> OnlyTraced:
    """Return what only the traced steps show; nothing where the other steps are too few, or were not timed."""
    steps, breakdown = chart.get(Steps), chart.get(Breakdown)
    if steps is None or breakdown is None or len(steps.steps) != len(breakdown.steps):
        return OnlyTraced()
    others = _beyond_of_others(chart, steps.count)
    if others is None:
        return OnlyTraced()
    rows = [row for row, steady in zip(breakdown.steps, steps.steady, strict=True) if steady]
    least = max(UNEVEN * breakdown.step_ms, others / MOSTLY)
    parts_ms = {}
    for part in breakdown.median if rows else ():
        times = [row[part] for row in rows]
        mean, added = fmean(times), fmean(times) - median(times)
        if added > least and added >= MOSTLY * mean:  # else the median step has most of it
            parts_ms[part] = added
    return OnlyTraced(parts_ms, others)


def _beyond_of_others(chart: Chart, traced: int) -> float | None:
    """Return what long steps add to each of the run's other steps, in ms; None where that is unknown."""
    pace, run, phases = chart.get(UntracedPace), chart.get(RunSteps), chart.get(RunPhases)
    if run is not None and phases is not None and phases.whole and run.count >= (1 + TIMES) * traced:
        # Where many steps are short, the mean is none above the median, though some are long.
        return max(run.total_ms - run.count * run.median_ms, run.long.beyond_ms if run.long else 0.0) / run.count
    known = pace is not None and pace.untraced.count >= TIMES * traced
    return pace.beyond_ms if pace is not None and known else None
