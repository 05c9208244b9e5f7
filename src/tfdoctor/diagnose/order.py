"""The order in which to fix findings whose changes affect each other.

The step model computes what a change saves after others, from the effects that rules state. Which changes
exclude or require each other depends on their *edits* (`Remedy.edit_id`), whichever rule proposes them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfdoctor.diagnose import savings
from tfdoctor.diagnose.savings import Effects
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Turn
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.terms.verdict import Effect, Finding, Stage

# An edit, or all changes to a stage, that come before another edit or instead of it, and why.
# tf.keras.Model.compile documents what steps_per_execution and run_eagerly do to each other and to callbacks
# (https://keras.io/api/models/model_training_apis/).
CLASHES: tuple[tuple[str | Stage, str, Relationship, str], ...] = (
    ("run-eagerly-off", "jit-compile", Relationship.FIRST, "XLA cannot compile a step that runs eagerly"),
    (
        "run-eagerly-off",
        "steps-per-execution",
        Relationship.FIRST,
        "an eager model executes its steps one at a time",
    ),
    (
        "jit-compile",
        "fused-batch-norm",
        Relationship.INSTEAD,
        "XLA fuses batch normalization itself, and the fused operation is only for steps without XLA",
    ),
    (
        Stage.BETWEEN,
        "steps-per-execution",
        Relationship.FIRST,
        "per-batch callbacks then run once per several steps, which hides their cost and changes what they receive",
    ),
)


def order(chart: Chart, results: Sequence[Result]) -> Order | None:
    """Return the order in which to fix the findings; None where it makes no difference."""
    findings = {r.rule.name: r.finding for r in results if r.finding and not r.rule.general}
    clashes = tuple(_clashes(findings))
    saving = {name: f.effects for name, f in findings.items() if f.effects}
    general = {r.rule.name: r.effects for r in results if r.rule.general and r.effects}
    ceilings, model = tuple(_ceilings(saving | general)), savings.model_of(chart)
    if model is None or model.distorted or savings.too_few_steps(chart):
        relations = (*ceilings, *clashes)
        return Order(relations=relations) if relations else None
    bounding = {ceiling.rule for ceiling in _ceilings(saving)}  # a general rule has no turn instead
    parts = {rule: effects for rule, effects in saving.items() if rule not in bounding}
    turns = tuple(_turns(parts, model, clashes))
    unneeded = tuple(_unneeded(parts, model, turns))
    least, relations = savings.WORTH_SAYING * model.step_ms, (*unneeded, *ceilings, *clashes)
    if not relations and all(abs(model.saving(parts[turn.rule]) - turn.ms_per_step) < least for turn in turns):
        return None  # every finding saves as much alone as at its turn
    return Order(turns=turns, relations=relations)


def in_order(results: Sequence[Result], order: Order | None) -> tuple[Result, ...]:
    """Return the results, those with a turn sorted by it among the places that they have."""
    turns = {turn.rule: at for at, turn in enumerate(order.turns)} if order else {}
    moved = [result for result in results if result.rule.name in turns]
    ordered = iter(sorted(moved, key=lambda result: turns[result.rule.name]))
    return tuple(next(ordered) if r.rule.name in turns else r for r in results)


def _turns(effects: Effects, model: StepModel, clashes: Iterable[Relation]) -> list[Turn]:
    """Take at each turn the finding that saves most after those before it, while any saves something."""
    turns, done, left = list[Turn](), list[Effect](), dict(effects)
    firsts = [clash for clash in clashes if clash.kind is Relationship.FIRST]
    while left:
        now = model.predict(done)
        waiting = {clash.rule for clash in firsts if any(first in left for first in clash.others)}
        ready = [name for name in left if name not in waiting] or list(left)  # all of them where each waits
        gains = {name: now - model.predict([*done, *left[name]]) for name in ready}
        name = min(ready, key=lambda name: (-gains[name], -model.saving(effects[name]), name))
        rest = now - model.predict([*done, *(e for own_effects in left.values() for e in own_effects)])
        if not savings.worth(max(gains[name], rest), now, model):
            break
        own_effects = left.pop(name)
        done += own_effects
        turns.append(Turn(name, max(0.0, gains[name]), savings.bound_of(own_effects, model)))
    while turns:  # the last ones may save nothing worth reporting
        remaining = model.step_ms - sum(turn.ms_per_step for turn in turns)
        if savings.worth(turns[-1].ms_per_step, remaining, model):
            break
        turns.pop()
    return turns


def _unneeded(effects: Effects, model: StepModel, turns: Sequence[Turn]) -> Iterator[Relation]:
    """Yield the findings that save something alone, but nothing after those that have a turn."""
    named = [turn.rule for turn in turns]
    for name, own_effects in effects.items():
        if name in named or not savings.worth(model.saving(own_effects), model.step_ms, model):
            continue
        enough = []
        for first in named:
            now = model.predict(effects[first])
            if not savings.worth(now - model.predict([*effects[first], *own_effects]), now, model):
                enough.append(first)
        yield Relation(Relationship.UNNEEDED, name, tuple(enough or named))


def _ceilings(effects: Effects) -> Iterator[Relation]:
    """Yield the findings that bound the cost of a whole stage, with those about parts of that stage."""
    parts = {name: own_effects for name, own_effects in effects.items() if not savings.bounds_stage(own_effects)}
    for name, own_effects in effects.items():
        if name not in parts and (others := savings.about_same(own_effects, parts)):
            stages = {effect.stage for effect in own_effects}
            yield Relation(Relationship.CEILING, name, tuple(others), " and ".join(sorted(stages)))


def _clashes(findings: Mapping[str, Finding]) -> Iterator[Relation]:
    """Yield the findings whose edits affect each other; one with both edits is in neither group."""

    def doing(what: str | Stage) -> list[str]:
        if isinstance(what, Stage):
            return [name for name, one in findings.items() if any(e.stage is what for e in one.effects)]
        return [name for name, one in findings.items() if any(r.edit_id == what for r in one.remedies)]

    for first, then, kind, why in CLASHES:
        early, late = doing(first), doing(then)
        if before := tuple(name for name in early if name not in late):
            yield from (Relation(kind, name, before, why) for name in late if name not in early)
