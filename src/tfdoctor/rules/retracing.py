"""A tf.function is traced again while the run trains.

## What it checks

Calls of a `tf.function` in the traced steps that built its graph anew, how long building and preparing it
took, and which argument was another one each time. A function's first two tracings are no retracing:
TensorFlow traces twice where variables are made.

## Why it matters

Tracing runs the Python of the whole step and rewrites the graph, which takes many times as long as running it.

## How to fix

Give numbers as tensors (`tf.constant(step)`): a Python number is part of the graph, so each value gets a
graph of its own. Keep shapes the same (`drop_remainder=True`), or leave them open in
`input_signature` or by `reduce_retracing=True`. Make functions once, outside of the loop.

## Holds for

TensorFlow 2.4 and later; which argument changed, in recordings of `tfdoctor profile`.

## Sources

- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [tf.function](https://www.tensorflow.org/api_docs/python/tf/function)
"""

import re
from dataclasses import dataclass

from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.retracing import Retraced, Retracing
from tfdoctor.facts.time.stack_samples import StackSamples
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms
from tfdoctor.verdict import (
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    calls: float = limit(
        2.0,
        "calls in the traced steps that traced anew: a single one may be the last, smaller batch",
    )
    tracings: float = limit(
        3.0,
        "tracings of the whole run: the first two belong to every function that makes variables",
    )


LIMITS = Limits()


def check(
    retracing: Retracing,
    breakdown: Breakdown,
    seen: StackSamples | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for functions that are traced again and again."""
    if not retracing.functions:
        return NotApplicable(reason="the trace shows no call of a tf.function")
    again = [
        one
        for one in retracing.functions
        if one.traced >= limits.calls and one.tracings >= limits.tracings
    ]
    if not again:
        calls = sum(one.calls for one in retracing.functions)
        return Healthy(summary=f"None of {calls} calls of a tf.function was traced again and again")
    worst = max(again, key=lambda one: one.traced)
    rows = tuple((one.name, count(one.traced), count(one.calls), _change(one)) for one in again)
    return Finding(
        summary=f"{worst.name} was traced anew by {worst.traced} of its {worst.calls} calls: "
        f"{milliseconds(retracing.total_ms)} per step",
        evidence=(
            Measure("tracing per step", ms(retracing.total_ms)),
            Measure("step", ms(breakdown.step_ms)),
            Table(("function", "calls that traced", "calls", "the argument that changes"), rows),
        ),
        remedies=(_remedy(worst, seen.called_at if seen else None),),
        effects=(
            Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(retracing.host_ms)),
            Effect(Stage.BETWEEN, 0.0, StepWork.TRACING, ms(retracing.between_ms)),
        ),
    )


def _change(one: Retraced) -> str:
    if not one.changed:
        return "unknown"
    return ", ".join(one.changed[:3]) + (", ..." if len(one.changed) > 3 else "")  # noqa: PLR2004 - as many as a cell holds


def _remedy(one: Retraced, at: Location | None) -> Remedy:
    """Advise by what changes: a Python number, a shape, or something else."""
    if one.changed and all(NUMBER.fullmatch(value) for value in one.changed):
        return Remedy(f"Give {one.name} a tensor instead of a Python number", TENSOR, at)
    shapes = [SHAPED.match(value) for value in one.changed]
    if all(shapes) and len({shape[0] for shape in shapes if shape}) > 1:
        if len({shape[1] for shape in shapes if shape}) > 1:
            return Remedy(
                f"Leave the shape of what {one.name} gets open, or pad it to a few lengths",
                OPEN,
                at,
            )
        return Remedy(f"Give {one.name} batches of one shape, or leave the shape open", SHAPE, at)
    return Remedy(
        f"Find out what is new at each call of {one.name}, and keep it the same", ONCE, at
    )


SHAPED = re.compile(r"TensorSpec\(shape=\(\w+(.*?)\)")
"""A tensor's shape without its first dimension, the size of the batch."""

NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")

TENSOR = "loss = train_step(x, y, tf.constant(step))  # one graph for all values"

SHAPE = """\
dataset = dataset.batch(128, drop_remainder=True)

@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, 32], tf.float32)]
def train_step(x): ..."""

OPEN = """\
@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, None], tf.int64)]
def train_step(x): ...

dataset = dataset.bucket_by_sequence_length(length, [64, 128, 256], [64, 32, 16, 8])"""

ONCE = """\
@tf.function  # made once, not in the loop; objects and Python values it is given stay the same
def train_step(x, y): ..."""


def sick() -> Verdict:
    """A step number from Python: each of 19 calls is traced."""
    one = Retraced("train_step", 19, 19, 30, ("10", "11", "12", "13"))
    return check(
        Retracing((one,), host_ms=13.0, between_ms=26.0),
        Breakdown.of(device=6.0, host=14.0, between=26.5),
        StackSamples(called_at=Location("train.py", 29)),
    )


def healthy() -> Verdict:
    """A function that was traced before the window."""
    return check(
        Retracing((Retraced("train_step", 19, 0, 1),)), Breakdown.of(device=6.0, host=0.4), None
    )
