"""The order in which to fix findings whose changes affect each other.

The step model computes what a change saves after others, from the effects that rules state. Which changes
exclude or require each other depends on their *edits* (`Remedy.edit_id`), whichever rule proposes them.
"""

from collections.abc import Iterable, Mapping, Sequence

from tfdoctor.diagnose.savings import ROUNDING, WORTH_SAYING, at_most, model_of, too_few_steps
from tfdoctor.diagnosis import Order, Relation, Relationship, Result, Turn
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Stage


class Clash(Record):
    """An edit that affects another edit, or all changes to a stage."""

    first: str | Stage
    then: str
    why: str
    instead: bool = False


# tf.keras.Model.compile documents what steps_per_execution and run_eagerly do to each other and to callbacks
# (https://keras.io/api/models/model_training_apis/).
CLASHES = (
    Clash("run-eagerly-off", "jit-compile", "XLA cannot compile a step that runs eagerly"),
    Clash("run-eagerly-off", "steps-per-execution", "an eager model executes its steps one at a time"),
    Clash(
        "jit-compile",
        "fused-batch-norm",
        "XLA fuses batch normalization itself, and the fused operation is only for steps without XLA",
        instead=True,
    ),
    Clash(
        Stage.BETWEEN,
        "steps-per-execution",
        "per-batch callbacks then run once per several steps, which hides their cost and changes what they receive",
    ),
)


def order(chart: Chart, results: Iterable[Result]) -> Order | None:
    """Return the order in which to fix the findings; None where it makes no difference."""
    found = [(r, r.outcome) for r in results if isinstance(r.outcome, Finding)]
    findings = {r.rule.name: finding for r, finding in found if not r.rule.general}
    clashes = _clashes(findings)
    saving = {name: f.effects for name, f in findings.items() if f.effects}
    general = {r.rule.name: f.effects for r, f in found if r.rule.general and f.effects}
    ceilings, model = _ceilings(saving | general), model_of(chart)
    if model is None or model.distorted or too_few_steps(chart):
        relations = (*ceilings, *clashes)
        return Order(relations=relations) if relations else None
    bounding = {ceiling.rule for ceiling in _ceilings(saving)}  # a general rule has no turn instead
    parts = {rule: effects for rule, effects in saving.items() if rule not in bounding}
    turns = _turns(parts, model, clashes)
    unneeded = _unneeded(parts, model, turns)
    if _independent(turns, parts, model) and not (ceilings or unneeded or clashes):
        return None
    return Order(turns=turns, relations=(*unneeded, *ceilings, *clashes))


def _independent(turns: Sequence[Turn], effects: Mapping[str, tuple[Effect, ...]], model: StepModel) -> bool:
    """Whether every finding saves as much alone as at its turn."""
    differences = (abs(model.saving(effects[t.rule]) - t.saves.value) for t in turns)
    return all(difference < WORTH_SAYING * model.step_ms for difference in differences)


def in_order(results: Sequence[Result], order: Order | None) -> tuple[Result, ...]:
    """Return the results, those with a turn sorted by it among the places that they have."""
    turns = {turn.rule: at for at, turn in enumerate(order.turns)} if order else {}
    moved = [result for result in results if result.rule.name in turns]
    ordered = iter(sorted(moved, key=lambda result: turns[result.rule.name]))
    return tuple(next(ordered) if r.rule.name in turns else r for r in results)


def _turns(
    effects: Mapping[str, tuple[Effect, ...]], model: StepModel, clashes: Iterable[Relation]
) -> tuple[Turn, ...]:
    """Take at each turn the finding that saves most after those before it, while any saves something."""
    turns: list[Turn] = []
    done: list[Effect] = []
    left = dict(effects)
    while left:
        now = model.predict(done)
        ready = _ready(left, clashes)
        gains = {name: now - model.predict([*done, *left[name]]) for name in ready}
        name = min(ready, key=lambda name: (-gains[name], -model.saving(effects[name]), name))
        rest = now - model.predict([*done, *(e for own_effects in left.values() for e in own_effects)])
        if not _worth(max(gains[name], rest), now, model):
            break
        own_effects = left.pop(name)
        done += own_effects
        bound = Bound.AT_MOST if at_most(own_effects, model) else Bound.EXPECTED
        turns.append(Turn(name, ms(max(0.0, gains[name])), bound))
    return _trimmed(turns, model)


def _trimmed(turns: list[Turn], model: StepModel) -> tuple[Turn, ...]:
    """Drop the last turns that save nothing worth reporting."""
    while turns:
        remaining = model.step_ms - sum(turn.saves.value for turn in turns)
        if _worth(turns[-1].saves.value, remaining, model):
            break
        turns.pop()
    return tuple(turns)


def _ready(left: Mapping[str, object], clashes: Iterable[Relation]) -> list[str]:
    """Return the findings that wait for no other that is left; all of them where each waits."""
    firsts = (clash for clash in clashes if clash.kind is Relationship.FIRST)
    waiting = {clash.rule for clash in firsts if any(first in left for first in clash.others)}
    return [name for name in left if name not in waiting] or list(left)


def _worth(saved: float, of: float, model: StepModel) -> bool:
    return saved >= max(WORTH_SAYING * of, ROUNDING * model.step_ms)


def _unneeded(
    effects: Mapping[str, tuple[Effect, ...]], model: StepModel, turns: Sequence[Turn]
) -> tuple[Relation, ...]:
    """Return the findings that save something alone, but nothing after those that have a turn."""
    named = [turn.rule for turn in turns]
    relations = []
    for name, own_effects in effects.items():
        if name in named or not _worth(model.saving(own_effects), model.step_ms, model):
            continue
        enough = []
        for first in named:
            now = model.predict(effects[first])
            if not _worth(now - model.predict([*effects[first], *own_effects]), now, model):
                enough.append(first)
        relations.append(Relation(Relationship.UNNEEDED, name, tuple(enough or named)))
    return tuple(relations)


def _ceilings(effects: Mapping[str, tuple[Effect, ...]]) -> tuple[Relation, ...]:
    """Return the findings that bound the cost of a whole stage, with those about parts of that stage."""
    whole = {
        name: own_effects
        for name, own_effects in effects.items()
        if all(effect.is_ceiling for effect in own_effects)
    }
    parts = {name: own_effects for name, own_effects in effects.items() if name not in whole}
    relations = []
    for name, own_effects in whole.items():
        stages = {effect.stage for effect in own_effects}
        others = [n for n, theirs in parts.items() if any(e.stage in stages for e in theirs)]
        if others:
            named = " and ".join(sorted(stages))
            relations.append(Relation(Relationship.CEILING, name, tuple(others), named))
    return tuple(relations)


def _clashes(findings: Mapping[str, Finding]) -> tuple[Relation, ...]:
    """Return the findings whose edits affect each other; one with both edits is in neither group."""
    relations: list[Relation] = []
    for clash in CLASHES:
        first = [name for name, finding in findings.items() if _does(finding, clash.first)]
        then = [name for name, finding in findings.items() if _does(finding, clash.then)]
        before = tuple(name for name in first if name not in then)
        if before:
            kind = Relationship.INSTEAD if clash.instead else Relationship.FIRST
            after = (name for name in then if name not in first)
            relations += [Relation(kind, name, before, clash.why) for name in after]
    return tuple(relations)


def _does(finding: Finding, what: str | Stage) -> bool:
    if isinstance(what, Stage):
        return any(effect.stage is what for effect in finding.effects)
    return any(remedy.edit_id == what for remedy in finding.remedies)
