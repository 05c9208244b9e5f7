"""In which order to follow findings whose changes bear on each other.

What a change saves after others is computed by the step model from the effects that rules state. What
excludes what, and what has no use before something else, is known of *edits*: of what a remedy does to the
script (`Remedy.trial`), whichever rule it comes from.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfdoctor.diagnose.engine import ROUNDING, WORTH_SAYING, model_of
from tfdoctor.diagnosis import Order, Relation, Relationship, Result, Turn
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.step_model import StepModel
from tfdoctor.units import ms
from tfdoctor.verdict import Bound, Effect, Finding, Stage


@dataclass(frozen=True, slots=True)
class Clash:
    """Two edits, or an edit and all changes to a stage, that bear on each other."""

    first: str | Stage
    then: str
    why: str
    instead: bool = False


CLASHES = (
    Clash("run-eagerly-off", "jit-compile", "a step that runs eagerly is not compiled as a whole"),
    Clash(
        "run-eagerly-off",
        "steps-per-execution",
        "a model that runs eagerly still executes its steps one by one",
    ),
    Clash(
        "jit-compile",
        "fused-batch-norm",
        "XLA fuses batch normalization itself, and the layer on the fused operation is for steps without it",
        instead=True,
    ),
    Clash(
        Stage.BETWEEN,
        "steps-per-execution",
        "callbacks of single batches then run once for several steps, which hides what they cost and changes "
        "what they see",
    ),
)
"""tf.keras.Model.compile documents what steps_per_execution and run_eagerly do to each other and to
callbacks (https://keras.io/api/models/model_training_apis/)."""


def order(chart: Chart, results: Iterable[Result]) -> Order | None:
    """Return the order in which to follow the findings; None where theirs makes no difference."""
    findings = {one.rule.name: one.outcome for one in results if isinstance(one.outcome, Finding)}
    clashes = _clashes(findings)
    model = model_of(chart)
    if model is None or model.distorted:
        return Order(relations=clashes) if clashes else None
    saving = {name: f.effects for name, f in findings.items() if f.effects}
    ceilings = _ceilings(saving)
    parts = {n: e for n, e in saving.items() if n not in {one.rule for one in ceilings}}
    turns = _turns(parts, model, clashes)
    unneeded = _unneeded(parts, model, turns)
    alike = all(
        abs(model.saving(parts[one.rule]) - one.saves.value) < WORTH_SAYING * model.step_ms
        for one in turns
    )
    if alike and not (ceilings or unneeded or clashes):
        return None
    return Order(turns=turns, relations=(*unneeded, *ceilings, *clashes))


def in_order(results: Sequence[Result], found: Order | None) -> tuple[Result, ...]:
    """Return the results with those that have a turn in the order of their turns, among their places."""
    turns = {one.rule: at for at, one in enumerate(found.turns)} if found else {}
    mine = iter(
        sorted((r for r in results if r.rule.name in turns), key=lambda r: turns[r.rule.name])
    )
    return tuple(next(mine) if r.rule.name in turns else r for r in results)


def _turns(
    effects: Mapping[str, tuple[Effect, ...]], model: StepModel, clashes: Iterable[Relation]
) -> tuple[Turn, ...]:
    """Take at each turn what saves most after those before it, as long as anything saves something."""
    pairs = [(first, one) for one in clashes for first in one.others]
    before = [(first, one.rule) for first, one in pairs if one.kind is Relationship.FIRST]
    turns: list[Turn] = []
    done: list[Effect] = []
    left = dict(effects)
    while left:
        now = model.predict(done)
        waiting = {then for first, then in before if first in left and then in left}
        ready = [name for name in left if name not in waiting] or list(left)
        gains = {name: now - model.predict([*done, *left[name]]) for name in ready}
        name = min(ready, key=lambda name: (-gains[name], -model.saving(effects[name]), name))
        rest = now - model.predict([*done, *(e for mine in left.values() for e in mine)])
        if not _worth(max(gains[name], rest), now, model):
            break
        mine = left.pop(name)
        done += mine
        bound = Bound.AT_MOST if any(e.bound is Bound.AT_MOST for e in mine) else Bound.EXPECTED
        turns.append(Turn(name, ms(max(0.0, gains[name])), bound))
    while turns and not _worth(turns[-1].saves.value, model.step_ms - _sum(turns), model):
        turns.pop()
    return tuple(turns)


def _sum(turns: Iterable[Turn]) -> float:
    return sum(one.saves.value for one in turns)


def _worth(saved: float, of: float, model: StepModel) -> bool:
    return saved >= max(WORTH_SAYING * of, ROUNDING * model.step_ms)


def _unneeded(
    effects: Mapping[str, tuple[Effect, ...]], model: StepModel, turns: Sequence[Turn]
) -> tuple[Relation, ...]:
    """Name the findings that would save something alone, but nothing after those that have a turn."""
    named = {one.rule for one in turns}
    found = []
    for name, mine in effects.items():
        if name in named or not _worth(model.saving(mine), model.step_ms, model):
            continue
        enough = [n for n in named if not _worth(*_after(model, effects[n], mine), model)]
        others = tuple(one.rule for one in turns if one.rule in enough)
        found.append(
            Relation(Relationship.UNNEEDED, name, others or tuple(one.rule for one in turns))
        )
    return tuple(found)


def _after(
    model: StepModel, first: Iterable[Effect], then: Iterable[Effect]
) -> tuple[float, float]:
    """Return what effects save after others, and the step that is left by then, in ms."""
    now = model.predict(first)
    return now - model.predict([*first, *then]), now


def _ceilings(effects: Mapping[str, tuple[Effect, ...]]) -> tuple[Relation, ...]:
    """Name the findings that say what a whole stage costs at most, beside others about parts of it."""
    whole = {name: mine for name, mine in effects.items() if all(map(_is_whole, mine))}
    found = []
    for name, mine in whole.items():
        stages = {effect.stage for effect in mine}
        parts = [
            other
            for other, theirs in effects.items()
            if other not in whole and any(effect.stage in stages for effect in theirs)
        ]
        if parts:
            words = " and ".join(sorted(stages))
            found.append(Relation(Relationship.CEILING, name, tuple(parts), words))
    return tuple(found)


def _is_whole(effect: Effect) -> bool:
    return not effect.subject and effect.bound is Bound.AT_MOST and effect.scales == 0.0


def _clashes(findings: Mapping[str, Finding]) -> tuple[Relation, ...]:
    """Name the findings whose edits bear on each other; one that has both sides takes neither."""
    found = []
    for clash in CLASHES:
        first = [name for name, one in findings.items() if _does(one, clash.first)]
        then = [name for name, one in findings.items() if _does(one, clash.then)]
        before = tuple(name for name in first if name not in then)
        kind = Relationship.INSTEAD if clash.instead else Relationship.FIRST
        found += [
            Relation(kind, name, before, clash.why) for name in then if before and name not in first
        ]
    return tuple(found)


def _does(finding: Finding, what: str | Stage) -> bool:
    if isinstance(what, Stage):
        return any(effect.stage is what for effect in finding.effects)
    return any(remedy.edit_id == what for remedy in finding.remedies)
