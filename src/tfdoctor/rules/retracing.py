"""A tf.function is retraced during training.

## What it checks

Calls of a `tf.function` in the traced steps that rebuilt its graph, how long building and preparing the graph
took, and which argument changed. The first two traces of a function are not counted: TensorFlow traces twice where
a function creates variables. Where the traced steps show no repeated retracing, the rule counts the calls of the
whole run that traced the function, and their time. Functions that one definition makes for the same model are one
function: `compile` discards the training function, and the next step traces a new one.

## Why it matters

Tracing runs the Python code of the whole step and optimizes the graph, which takes many times as long as running
the graph.

## How to fix

Pass numbers as tensors (`tf.constant(step)`): a Python number is part of the graph, so each value gets its own
graph. Keep shapes constant (`drop_remainder=True`), or leave them open with `input_signature` or
`reduce_retracing=True`. Create functions once, outside of the loop. Call `compile` once: assign a learning rate to
`model.optimizer.learning_rate`.

## Holds for

TensorFlow 2.4 and later. Only recordings of `tfdoctor profile` show which argument changed, and what happened
outside of the traced steps. The time over the run has no saving: it falls with the length of the run if
new shapes or values become rare. A function that was traced in the first half of its calls only is healthy.

## Sources

- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [tf.function](https://www.tensorflow.org/api_docs/python/tf/function)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.retracing import Retraced, Retracing
from tfdoctor.facts.step_time.run_tracing import RunTracing, TracedInRun
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms
from tfdoctor.verdict import (
    Concern,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    calls: float = limit(
        2.0,
        "Smallest number of calls in the trace that retrace the function; a single call may be the last, "
        "smaller batch",
    )
    tracings: float = limit(
        3.0,
        "Smallest number of times that the function is traced in the whole run; twice is normal where it "
        "creates variables",
    )
    again: float = limit(
        5.0,
        "Smallest number of calls of the run, after the first, that trace a function which is hardly traced in the "
        "traced steps; TensorFlow itself warns from 5 on",
    )
    share: float = limit(
        0.05,
        "Smallest share of the run that such calls take; xprof reports waits from 5 % on",
        most=1.0,
    )


LIMITS = Limits()


def check(
    retracing: Retracing,
    breakdown: Breakdown,
    samples: StackSamples | None,
    run: RunTracing | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Report functions that are retraced repeatedly, in the traced steps or over the run."""
    retraced = _retraced(retracing, limits)
    if not retraced and run and (again := _over_the_run(run, breakdown, limits)):
        return _of_run(again, breakdown)
    if not retracing.functions:
        return NotApplicable(reason="the trace contains no call of a tf.function")
    if not retraced:
        calls = sum(function.calls for function in retracing.functions)
        return Healthy(summary=f"No tf.function was retraced repeatedly in {calls} calls")
    worst = max(retraced, key=lambda function: function.traced)
    return Finding(
        summary=f"{worst.name} was retraced in {worst.traced} of {worst.calls} calls, "
        f"which takes {milliseconds(retracing.total_ms)} of {breakdown.each_step}",
        evidence=(
            Measure("retracing time per step", ms(retracing.total_ms)),
            Measure("step time", ms(breakdown.step_ms)),
            _table(retraced),
        ),
        remedies=(_remedy(worst, samples.called_at if samples else None),),
        effects=_effects(retracing),
    )


def _retraced(retracing: Retracing, limits: Limits) -> list[Retraced]:
    return [
        function
        for function in retracing.functions
        if function.traced >= limits.calls and function.tracings >= limits.tracings
    ]


def _over_the_run(run: RunTracing, breakdown: Breakdown, limits: Limits) -> list[TracedInRun]:
    """Return the functions whose tracing costs enough and went on in the later half of their calls."""
    found = [
        function
        for function in run.functions
        if function.again >= limits.again
        and function.last >= function.calls / 2
        and function.step_ms >= limits.share * (function.step_ms + breakdown.step_ms)
    ]
    return sorted(found, key=lambda function: -function.step_ms)


def _of_run(functions: Sequence[TracedInRun], breakdown: Breakdown) -> Finding:
    """State the time of tracing over the whole run: it has no part in the typical steps that savings refer to."""
    worst, total_ms = functions[0], sum(function.step_ms for function in functions)
    share = total_ms / (total_ms + breakdown.step_ms)
    retraced = [
        Retraced(
            function.name,
            function.calls,
            function.tracings,
            function.tracings,
            function.changed,
            function.remade,
        )
        for function in functions
    ]
    made = f" as {worst.made} separate function objects" if worst.remade else ""
    return Finding(
        summary=f"{worst.name} was traced in {worst.tracings} of {worst.calls} calls{made}, which took "
        f"{milliseconds(worst.step_ms)} per step over the run, beside {milliseconds(breakdown.step_ms)} of "
        "a typical step",
        evidence=(
            Measure("tracing time per step over the run", ms(total_ms)),
            Measure("typical step", ms(breakdown.step_ms)),
            _table(retraced),
        ),
        remedies=(_once(worst) if worst.remade else _remedy(retraced[0], worst.at),),
        severity=Severity.of(share),
        concern=Concern.LONG_STEPS,
    )


def _once(function: TracedInRun) -> Remedy:
    """Say how to make a function once whose objects are made again and again."""
    if function.in_fit:
        return Remedy(
            "Compile the model once, before the loop that calls fit", COMPILE, function.at
        )
    return Remedy(f"Create {function.name} once, outside of the loop", ONCE, function.at)


def _effects(retracing: Retracing) -> tuple[Effect, ...]:
    return (
        Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(retracing.host_ms)),
        Effect(Stage.BETWEEN, 0.0, StepWork.TRACING, ms(retracing.between_ms)),
    )


def _table(functions: Sequence[Retraced]) -> Table:
    rows = tuple(
        (function.name, count(function.traced), count(function.calls), _change(function))
        for function in functions
    )
    return Table(("function", "calls that retraced", "calls", "changing argument"), rows)


SHOWN_VALUES = 3
"""Values of the changing argument that a cell of the table holds."""


def _change(function: Retraced) -> str:
    if function.remade:
        return "none: each is a new function object"
    if not function.changed:
        return "unknown"
    rest = ", ..." if len(function.changed) > SHOWN_VALUES else ""
    return ", ".join(function.changed[:SHOWN_VALUES]) + rest


def _remedy(function: Retraced, at: Location | None) -> Remedy:
    """Choose by what changes: a Python number, a shape, or something else."""
    if function.changed and all(NUMBER.fullmatch(value) for value in function.changed):
        action = f"Pass {function.name} a tensor instead of a Python number"
        return Remedy(action, TENSOR.format(function.name), at, "tensor-argument")
    matches = [SHAPED.match(value) for value in function.changed]
    shapes = {match[0] for match in matches if match}
    if None in matches or len(shapes) < SEVERAL:
        action = f"Find what changes in each call of {function.name} and keep it constant"
        return Remedy(action, ONCE, at)
    if len({match[1] for match in matches if match}) < SEVERAL:
        action = f"Give {function.name} batches of one shape, or leave the shape open"
        return Remedy(action, SHAPE.format(function.name), at, "reduce-retracing")
    action = f"Leave the input shape of {function.name} open, or pad the input to a few lengths"
    return Remedy(action, OPEN.format(function.name), at, "reduce-retracing")


SEVERAL = 2
"""Different shapes from which on the shape is what changes."""

SHAPED = re.compile(r"TensorSpec\(shape=\(\w+(.*?)\)")
"""A tensor's shape; the group is the shape without its first dimension, the batch size."""

NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")

TENSOR = "loss = {}(x, y, tf.constant(step))  # one graph for all values"

SHAPE = """\
dataset = dataset.batch(128, drop_remainder=True)

@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, 32], tf.float32)]
def {}(x): ..."""

OPEN = """\
@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, None], tf.int64)]
def {}(x): ...

dataset = dataset.bucket_by_sequence_length(length, [64, 128, 256], [64, 32, 16, 8])"""

ONCE = """\
@tf.function  # create it once, outside of the loop; pass the same objects and Python values in each call
def train_step(x, y): ..."""


COMPILE = """\
model.compile(optimizer, loss)  # each call discards the training function
for epoch in range(epochs):
    model.optimizer.learning_rate = schedule(epoch)  # assigns a variable: nothing is traced anew
    model.fit(dataset)"""


def sick() -> Verdict:
    """The step number is a Python number, and each of 19 calls retraces."""
    function = Retraced("train_step", 19, 19, 30, ("10", "11", "12", "13"))
    return check(
        Retracing((function,), host_ms=13.0, between_ms=26.0),
        Breakdown.of(device=6.0, host=14.0, between=26.5),
        StackSamples(called_at=Location("train.py", 29)),
        None,
    )


def healthy() -> Verdict:
    """The function was traced before the traced steps."""
    retracing = Retracing((Retraced("train_step", 19, 0, 1),))
    return check(retracing, Breakdown.of(device=6.0, host=0.4), None, None)
