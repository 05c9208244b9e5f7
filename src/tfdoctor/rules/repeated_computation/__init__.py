"""A step computes what it has already.

## What it checks

Operations that ran twice or more in a step although all their inputs are equal: the same type and attributes,
applied to the same tensors, with no write to a variable that they read in between. An example is a model that is
called on the batch for the loss, and called again for a metric. Also operations that depend on constants only, such
as a normalization of a captured matrix, and give the same result in every step; or on constants and variables that
no operation of the program assigns and that have no gradient, such as the Cholesky factor of a covariance with
fixed parameters.

## Why it matters

Each repetition takes its whole time again, and that of its gradient, and of adding this one to the others.
TensorFlow merges equal operations and computes small constants in advance, but not operations that read variables,
and not what depends on captured tensors.

## How to fix

Call the model once and use its result for the loss and the metric. Compute what is constant before the function
that trains, or once in the constructor of a layer. Compute what depends on variables that the training does not
change once as well, and again after each assignment to one of them.

## Holds for

TensorFlow 2 graphs that XLA does not compile, on all devices. Random operations never count as equal, so layers
behind dropout do not count where it is active. Gradients that compute a forward result again (`tf.recompute_grad`)
save memory and do not count. Python may assign a variable between two steps, which a graph does not show: results
of variables do not count where Python assigned one in the traced steps, or where the optimizer runs outside of the
graphs. The saving of constants and gradients is an upper bound: reading a stored result takes time as well.

## Sources

- [TensorFlow, graph optimization with Grappler](https://www.tensorflow.org/guide/graph_optimization)
- [TensorFlow, better performance with tf.function](https://www.tensorflow.org/guide/function)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.repeated_computation.repeated_results import Constant, Repeat, RepeatedResults
from tfdoctor.terms.humanize import location, milliseconds, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Cell,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (found(RepeatedResults, lambda work: work.ms),)
BY_HAND = "which line keeps the value for the others is a choice in the code of the step"

SHOWN = 5
"""Pairs of lines that are shown: those of most time."""

COLUMNS = ("computed", "first at", "again at", "operations", "time per step")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much repetition is worth a change."""

    share: float = share_limit(
        0.03, "Smallest share of the compute time in repeated work that is reported: steps vary by as much"
    )
    part: float = share_limit(
        0.1, "Smallest share of all repeated work in a pair of lines that is named: the rest is scattered"
    )
    least_ms: float = limit(
        0.1,
        "Shortest time per step, in ms, of a pair of lines that is named: tracing adds about 0.001 ms to each of "
        "its operations",
    )


def check(work: RepeatedResults, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Add up what is computed again, and compare it with the compute time."""
    share = work.ms / operations.total_ms if operations.total_ms else 0.0
    evidence = (
        Measure("time computing again what is known, per step", ms(work.ms)),
        Measure.share("share of the compute time computing again what is known", share, limits.share),
    )
    least_ms = max(limits.least_ms, limits.part * work.ms)
    repeats = [one for one in work.repeats if one.ms >= least_ms]
    constants = [one for one in work.constants if one.ms >= least_ms]
    if share < limits.share or not (repeats or constants):
        summary = f"{percent(share)} of the compute time computes again what is known"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary="; ".join(_sentences(repeats, constants)),
        evidence=(*evidence, _table(repeats, constants)),
        remedies=tuple(_remedies(repeats, constants)),
        effects=tuple(_effects(repeats, constants)),
    )


def _sentences(repeats: list[Repeat], constants: list[Constant]) -> Iterator[str]:
    """Yield what is repeated, with its time."""
    if repeats:
        time = milliseconds(sum(one.ms for one in repeats))
        places = map(location, filter(None, (repeats[0].first, repeats[0].again)))
        lines = " and ".join(dict.fromkeys(places))
        at = f" at {lines}" if lines else ""
        yield f"Each step computes the same twice or more{at}: {time} per step"
    if constants:
        time = milliseconds(sum(one.ms for one in constants))
        at = f" at {location(constants[0].at)}" if constants[0].at else ""
        read = any(one.reads for one in constants)
        when = "change only where Python assigns a variable" if read else "never change"
        yield f"Results that {when} are computed in each step{at}: {time} per step"


def _table(repeats: list[Repeat], constants: list[Constant]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (_name(one.rows, one.layers), one.first or "unknown", one.again or "unknown",
         count(len(one.rows)), ms(one.ms))
        for one in repeats[:SHOWN]
    ]  # fmt: skip
    rows += [
        (_name(one.rows), "every step", one.at or "unknown", count(len(one.rows)), ms(one.ms))
        for one in constants[:SHOWN]
    ]
    return Table(COLUMNS, tuple(rows))


def _name(rows: Iterable[OperationTime], layers: tuple[str, ...] = ()) -> str:
    """Return the layers or the types of operations, those of most time first."""
    types = dict.fromkeys(row.type for row in sorted(rows, key=lambda row: -row.ms))
    return ", ".join((layers or tuple(types))[:3])


def _remedies(repeats: list[Repeat], constants: list[Constant]) -> Iterator[Remedy]:
    asked: set[Location | None] = set()
    for one in repeats[:SHOWN]:
        if one.again not in asked:
            asked.add(one.again)
            first = f" of {location(one.first)}" if one.first and one.first != one.again else ""
            yield Remedy(f"Compute it once and use the result{first} again", REUSE, one.again)
    for constant in constants[:SHOWN]:
        if constant.at not in asked:
            asked.add(constant.at)
            yield _once(constant)


def _once(constant: Constant) -> Remedy:
    """Return the remedy for a result that never changes, or only where Python assigns a variable."""
    if not constant.reads:
        return Remedy("Compute it once, before the training", ONCE, constant.at)
    lines = " and ".join(map(location, constant.reads[:SHOWN]))
    action = (
        f"If nothing assigns the variables read at {lines} between the steps, compute it once before the loop; "
        "otherwise after each assignment"
    )
    return Remedy(action, AFTER_ASSIGNMENT, constant.at)


REUSE = """\
logits = model(x, training=True)  # once
loss = loss_fn(y, logits)
metric.update_state(y, logits)  # instead of model(x)"""

ONCE = """\
matrix = normalize(matrix)  # before the function that trains, not in it"""

AFTER_ASSIGNMENT = """\
factor = tf.Variable(factorize(scale), trainable=False)  # before the function that trains
...
scale.assign(value)
factor.assign(factorize(scale))  # after each assignment, if there is one"""


def _effects(repeats: Iterable[Repeat], constants: Iterable[Constant]) -> Iterator[Effect]:
    """Yield one effect for each operation: of a repetition all of its time goes."""
    for one in repeats:
        yield from (row.scaled(0.0) for row in one.rows)
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in one.gradients)
        for added in one.sums:
            left, row = 1.0 - added.spared, added.row
            yield Effect(Stage.DEVICE, left, row.name, ms(row.ms), bound=Bound.AT_MOST, narrows=True)
    for constant in constants:
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in constant.rows)


def example(work: RepeatedResults | None = None, rest_ms: float = 27.0) -> Verdict:
    """A model is called for the loss at line 31, and again for a metric at line 35."""
    again = (named("model_2/dense/MatMul", 9.0), named("model_2/dense/Relu", 1.0))
    found = work or RepeatedResults((Repeat(FIRST, Location("train.py", 35), again),))
    rows = [row for one in found.repeats for row in (*one.rows, *one.gradients)]
    rows += [row for one in found.constants for row in one.rows]
    return check(found, Operations.training(found.ms + rest_ms, *rows))


FIRST = Location("train.py", 31)


def named(name: str, time_ms: float) -> OperationTime:
    """Build an operation whose name ends with its type."""
    return OperationTime(name=name, type=name.rsplit("/", 1)[-1], ms=time_ms, layer="dense")


sick = example


def healthy() -> Verdict:
    """The metric uses the result of the loss."""
    return example(RepeatedResults())
