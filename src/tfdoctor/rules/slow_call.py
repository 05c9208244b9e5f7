"""A costly call of Keras runs in every step.

## What it checks

Samples of the Python stack in calls that are made for a whole run or epoch: `fit` (of one or two steps),
`predict`, `evaluate`, `get_weights`, `set_weights`, `clone_model`, saving, `clear_session`; and in models called
outside of a `tf.function`. Those count that are seen in most of the traced steps; a call once per epoch or every
100 steps is not reported. The time in compiled functions of such a call is left out, for that is its useful work.

## Why it matters

`fit`, `predict` and `evaluate` build an input pipeline, an iterator and callbacks at each call: milliseconds for a
batch that the model computes in less. `get_weights` and `set_weights` copy all weights to NumPy and back, variable
by variable. `clone_model` builds every layer again. A model called outside of a `tf.function` runs each operation
from Python.

## How to fix

| call | instead |
|---|---|
| `model.fit(x, y)` of one batch | `model.train_on_batch(x, y)`, or one `fit` over all batches |
| `model.predict(x)` of one batch | `model.predict_on_batch(x)`, or `model(x, training=False)` in a `tf.function` |
| `model.evaluate(x, y)` of one batch | `model.test_on_batch(x, y)`, or evaluate once per epoch |
| `get_weights`, `set_weights` for a slow copy of a model | `variable.assign` in a `tf.function`; `use_ema=True` |
| `clone_model` | clone once, before the loop |
| `save`, `save_weights` | every 1,000 steps or once per epoch |
| `model(x)` outside of a `tf.function`, beside a step that is one | a `tf.function` that calls the model |
| `clear_session` | once before each model is built |

## Holds for

Recordings of `tfdoctor profile` with TensorFlow 2.5 and later, Keras 2 and 3. A line's time is its share of the
samples: with 10 samples it is uncertain by a third. The saving is an upper bound, for what replaces the call takes
time as well.

## Sources

- [Keras FAQ: the difference between predict() and calling a model](https://keras.io/getting_started/faq/#whats-the-difference-between-model-methods-predict-and-call)
- [Model training APIs: predict_on_batch](https://keras.io/api/models/model_training_apis/#predict_on_batch-method)
- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [tf.Variable.assign](https://www.tensorflow.org/api_docs/python/tf/Variable#assign)
- [Optimizers: use_ema](https://keras.io/api/optimizers/)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.long_step_lines import LongStepLines
from tfdoctor.facts.step_time.single_operations import SingleOperations
from tfdoctor.facts.step_time.slow_calls import SlowCall, SlowCalls, SlowLine
from tfdoctor.humanize import location, milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"

SHOWN_ROWS = 8
"""Rows of the table: the lines that take most of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When such calls are reported: both limits must be reached."""

    share: float = limit(
        0.05,
        "Smallest share of the step in such calls; xprof reports waits from 5 % on",
        most=1.0,
    )
    samples: float = limit(
        5.0, "Stack samples in such calls; with 5 their time is uncertain by 45 %"
    )


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do instead of a call, and the code."""

    action: str
    code: str
    edit_id: str = ""


ON_BATCH = """\
values = model.predict_on_batch(x)  # NumPy; for a tensor: model(x, training=False) in a tf.function"""

TEST_ON_BATCH = """\
results = model.test_on_batch(x, y)"""

ASSIGN = """\
@tf.function
def update_targets():
    for slow, variable in zip(target.variables, model.variables):
        slow.assign(tau * variable + (1 - tau) * slow)"""

CALL = """\
@tf.function
def act(state):
    return model(state, training=False)"""

RARELY = """\
if step % 1000 == 0:
    model.save_weights(path)"""

ONE_FIT = """\
loss = model.train_on_batch(x, y)  # one batch: no dataset and no callbacks to build
# or one fit over all chunks: model.fit(tf.data.Dataset.from_generator(chunks, output_signature=signature))"""

INSTEAD = {
    SlowCall.FIT: Advice("Call train_on_batch, or fit once over all batches", ONE_FIT),
    SlowCall.PREDICT: Advice(
        "Call predict_on_batch, or the model in a tf.function", ON_BATCH, "calls-per-batch"
    ),
    SlowCall.EVALUATE: Advice("Call test_on_batch, or evaluate once per epoch", TEST_ON_BATCH),
    SlowCall.WEIGHTS: Advice(
        "Update the variables in place, in a tf.function", ASSIGN, "assign-weights"
    ),
    SlowCall.CLONE: Advice("Clone the model once, before the loop", ""),
    SlowCall.SAVE: Advice("Save every 1,000 steps or once per epoch", RARELY),
    SlowCall.MODEL: Advice("Call the model in a tf.function", CALL),
    SlowCall.CLEAR: Advice("Clear the session once, before the model is built", ""),
}
"""What to do instead of each call; the sources are linked on the rule's page."""


def check(
    slow: SlowCalls,
    breakdown: Breakdown,
    long: LongStepLines | None,
    single: SingleOperations | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Compare the time of such calls with the step."""
    seen = sum(line.seen for line in slow.lines)
    share = slow.ms / breakdown.step_ms if breakdown.step_ms else 0.0
    measures = (
        Measure("share of the step in such calls", ratio(share), ratio(limits.share)),
        Measure("stack samples in such calls", count(seen), count(limits.samples)),
    )
    if share < limits.share or seen < limits.samples:
        return Healthy(summary=_little(slow, long), evidence=measures)
    return Finding(
        summary=_summary(slow),
        evidence=(*measures, _table(slow)),
        remedies=tuple(_remedy(line) for line in _first_of_each(slow.lines)),
        effects=(*_effects(slow, single), *_input(slow, breakdown)),
    )


def _little(slow: SlowCalls, long: LongStepLines | None) -> str:
    """Say how much such calls take of typical steps, and where only long steps make them."""
    if slow.ms:
        return f"Calls such as predict and set_weights take {milliseconds(slow.ms)} per step"
    first = next(iter(long.slow_calls), None) if long and long.timed else None
    if first is None:
        return "No call such as predict and set_weights is seen in typical steps"
    call, at = first.call, location(first.at)
    return f"Calls of {call} ({at}) are not in typical steps, only in long ones; see step-outlier"


def _summary(slow: SlowCalls) -> str:
    """Name the kind of call that takes most of the time, and its line that does."""
    first, *others = _first_of_each(slow.lines)
    time_ms = sum(line.ms for line in slow.lines if line.call is first.call)
    of = f"{milliseconds(time_ms)} of each step"
    text = f"Calling {first.call} in every step takes about {of}, mostly at {location(first.at)}"
    return f"{text}; all such calls take {milliseconds(slow.ms)}" if others else text


def _first_of_each(lines: Sequence[SlowLine]) -> list[SlowLine]:
    """Return the longest line of each kind of call, the kind that takes most first."""
    kinds = dict.fromkeys(line.call for line in lines)
    groups = [[line for line in lines if line.call is kind] for kind in kinds]
    return [group[0] for group in sorted(groups, key=lambda group: -sum(one.ms for one in group))]


def _table(slow: SlowCalls) -> Table:
    rows = tuple(
        (line.at, str(line.call), f"{line.steps} of {slow.step_count}", ms(line.ms))
        for line in slow.lines[:SHOWN_ROWS]
    )
    return Table(("your line", "call", "seen in steps", "time per step (estimate)"), rows)


def _remedy(line: SlowLine) -> Remedy:
    advice = INSTEAD[line.call]
    return Remedy(advice.action, advice.code, line.at, advice.edit_id)


def _effects(slow: SlowCalls, single: SingleOperations | None) -> tuple[Effect, ...]:
    """Return the calls' time in each part of the step, as a ceiling.

    The operations that Python runs one by one may all be theirs: samples show only a part of short ones.
    """
    alone_ms = single.inside_ms + single.between_ms if single else 0.0
    times = {stage: slow.part_ms(stage) for stage in (Stage.HOST, Stage.BETWEEN, Stage.DEVICE)}
    times[Stage.DEVICE] = max(times[Stage.DEVICE], alone_ms)
    return tuple(
        Effect(stage, 0.0, StepWork.SLOW_CALLS, ms(taken), bound=Bound.AT_MOST)
        for stage, taken in times.items()
        if taken
    )


def _input(slow: SlowCalls, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return the waits for the pipelines that the calls build."""
    waits_ms, all_ms = slow.part_ms(Stage.INPUT), breakdown[Stage.INPUT]
    if not waits_ms or not all_ms:
        return ()
    return (Effect(Stage.INPUT, max(0.0, 1.0 - waits_ms / all_ms), bound=Bound.AT_MOST),)


def sick() -> Verdict:
    """A reinforcement learning step calls predict on one batch: 150 of 168 ms."""
    return check(_example(150.0), Breakdown.of(between=153.0, host=5.0, device=10.0), None, None)


def healthy() -> Verdict:
    """The same loop calls predict_on_batch."""
    return check(
        SlowCalls(step_count=30), Breakdown.of(between=2.0, host=2.0, device=10.0), None, None
    )


def _example(time_ms: float) -> SlowCalls:
    at = Location("train.py", 51)
    line = SlowLine(at, SlowCall.PREDICT, 60, 29, {Stage.BETWEEN: time_ms})
    return SlowCalls((line,), 30)
