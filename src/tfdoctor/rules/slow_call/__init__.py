"""A costly call runs in every step.

## What it checks

Samples of the Python stack in calls that are made for a whole run or epoch: `fit` (of one or two steps),
`predict`, `evaluate`, `get_weights`, `set_weights`, `clone_model`, saving, `clear_session`; and in models called
outside of a `tf.function`. Those count that are seen in most of the traced steps; a call once per epoch or every
100 steps is not reported. The time in compiled functions of such a call is left out, for that is its useful work.

Functions that write for somebody who reads (`tf.summary`, prints, logging, CSV and other tables, images, clients
such as MLflow's) are compared with how often anybody can read: a write in every step is reported where steps are
shorter than 5 seconds, which is how often TensorBoard looks for new data.

Also a `tf.function` that a loop in Python calls 8 times per step or more, each time for one example (it was
traced for arguments of which the first dimension is 1, and for no larger one), where the calls take at least twice
as long as their operations.

## Why it matters

`fit`, `predict` and `evaluate` build an input pipeline, an iterator and callbacks at each call: milliseconds for a
batch that the model computes in less. `get_weights` and `set_weights` copy all weights to NumPy and back, variable
by variable. `clone_model` builds every layer again. A model called outside of a `tf.function` runs each operation
from Python. To call a `tf.function` takes 0.1 to 0.5 ms however little it computes, so 80 calls for one example
each take much longer than one call for all.

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
| a `tf.function` for one example at a time | one call for all, stacked, where none needs another's result |
| `clear_session` | once before each model is built |
| `tf.summary.histogram`, `print` and others that write | every 100 steps, or as many as pass in 5 seconds |

## Holds for

Recordings of `tfdoctor profile` with TensorFlow 2.5 and later, Keras 2 and 3. A line's time is its share of the
samples: with 10 samples it is uncertain by a third. The saving is an upper bound: it counts the time that the
samples allow for (one standard error more than they show, at most all Python outside of compiled functions) and
all operations that Python runs one by one. What replaces the call takes time as well. The time of
functions for one example is measured, and that of all calls but one counts.

Users met it as `predict` in a loop over single examples.

## Sources

- [Keras FAQ: the difference between predict() and calling a model](https://keras.io/getting_started/faq/#whats-the-difference-between-model-methods-predict-and-call)
- [Model training APIs: predict_on_batch](https://keras.io/api/models/model_training_apis/#predict_on_batch-method)
- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
- [tf.Variable.assign](https://www.tensorflow.org/api_docs/python/tf/Variable#assign)
- [Optimizers: use_ema](https://keras.io/api/optimizers/)
- [TensorBoard: --reload_interval](https://github.com/tensorflow/tensorboard/blob/master/tensorboard/plugins/core/core_plugin.py)
- [Keras issue 13118: predict in a loop](https://github.com/keras-team/keras/issues/13118)
- [TensorFlow issue 44711: the same](https://github.com/tensorflow/tensorflow/issues/44711)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.long_step_lines import LongStepLines
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.single_operations import SingleOperations
from tfdoctor.facts.step_time.slow_calls import SlowCall, SlowCalls, SlowLine
from tfdoctor.rules.slow_call.instead import INSTEAD
from tfdoctor.rules.slow_call.single_calls import SingleCall, SingleCalls
from tfdoctor.rules.slow_call.writing import Writing
from tfdoctor.terms.humanize import location, milliseconds, number
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Evidence,
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
BY_HAND = "what the loop does with the result of the call is not certain from the file"

SHOWN_ROWS = 8
"""Rows of the table: the lines that take most of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When such calls are reported: both limits must be reached."""

    share: float = share_limit(0.05, "Smallest share of the step in such calls; xprof reports waits from 5 % on")
    samples: float = limit(5.0, "Stack samples in such calls; with 5 their time is uncertain by 45 %")


OF_THE_RUN = {SlowCall.PREDICT: RunCall.PREDICT, SlowCall.EVALUATE: RunCall.EVALUATE, SlowCall.SAVE: RunCall.SAVE}
"""The calls whose time the account of the run has as a phase of its own."""


def check(  # noqa: PLR0913, PLR0917 - the calls, and all facts that say what a change may spare with them
    slow: SlowCalls,
    breakdown: Breakdown,
    long: LongStepLines | None,
    single: SingleOperations | None,
    body: LoopBody | None,
    examples: SingleCalls | None,
    writing: Writing,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the time of such calls with the step, and writes with how often they can be read."""
    if writing.often == 1:
        slow = replace(slow, lines=tuple(one for one in slow.lines if one.call is not SlowCall.WRITE))
    sampled, many = slow, examples.calls if examples else ()
    ordered = sorted((*slow.lines, *(one.line for one in many)), key=lambda line: -line.ms)
    slow = replace(slow, lines=tuple(ordered))
    seen, share = sum(line.seen for line in slow.lines), breakdown.share(slow.ms)
    measures = (
        Measure.share("share of the step in such calls", share, limits.share),
        Measure("stack samples in such calls", count(seen), count(limits.samples)),
    )
    if share < limits.share or seen < limits.samples:
        return Healthy(summary=_little(slow, long), evidence=measures)
    first = _first_of_each(slow.lines)
    return Finding(
        summary=_summary(slow, many),
        evidence=(*measures, *writing.measures, *_evidence(slow, many)),
        remedies=tuple(replace(_instead(line, writing), at=line.at) for line in first),
        effects=(*_effects(sampled, many, single, body), *_input(slow, breakdown)),
        run_effects=tuple(writing.effects),
        about=OF_THE_RUN.get(first[0].call),
        alike=len(first) - 1,
    )


def _instead(line: SlowLine, writing: Writing) -> Remedy:
    return writing.remedy if line.call is SlowCall.WRITE else INSTEAD[line.call]


def _evidence(slow: SlowCalls, many: Sequence[SingleCall]) -> Iterator[Evidence]:
    """Yield how often each function for one example is called and how long a call takes, and all lines."""
    for one in many:
        yield Measure(f"calls of {one.name} per step", count(one.calls))
        yield Measure(f"time of a call of {one.name}", ms(one.call_ms))
    yield Table.of(
        slow.lines,
        ("your line", lambda line: line.at),
        ("call", lambda line: str(line.call)),
        ("seen in steps", lambda line: f"{line.steps} of {slow.step_count}"),
        ("time per step (estimate)", lambda line: ms(line.ms)),
        most=SHOWN_ROWS,
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


def _summary(slow: SlowCalls, many: Sequence[SingleCall]) -> str:
    """Name the kind of call that takes most of the time, and its line that does."""
    first, *others = _first_of_each(slow.lines)
    time_ms = sum(line.ms for line in slow.lines if line.call is first.call)
    called = f"{first.call} in every step"
    if one := next((one for one in many if one.line == first), None):
        called = f"{one.name} {number(round(one.calls))} times in every step, for single examples,"
    of = f"{milliseconds(time_ms)} of each step"
    text = f"Calling {called} takes about {of}, mostly at {location(first.at)}"
    return f"{text}; all such calls take {milliseconds(slow.ms)}" if others else text


def _first_of_each(lines: Sequence[SlowLine]) -> list[SlowLine]:
    """Return the longest line of each kind of call, the kind that takes most first."""
    kinds = dict.fromkeys(line.call for line in lines)
    groups = [[line for line in lines if line.call is kind] for kind in kinds]
    return [group[0] for group in sorted(groups, key=lambda group: -sum(one.ms for one in group))]


def _effects(
    slow: SlowCalls, many: Sequence[SingleCall], single: SingleOperations | None, body: LoopBody | None
) -> tuple[Effect, ...]:
    """Return the calls' time in each part of the step, as a ceiling.

    The operations that Python runs one by one may all be theirs: samples show only a part of short ones.
    """
    alone_ms = single.inside_ms + single.between_ms if single and slow.lines else 0.0
    own_ms = {Stage.HOST: body.host_ms, Stage.BETWEEN: body.between_ms} if body else {}
    times = {stage: _ceiling(slow, stage, own_ms.get(stage, 0.0)) for stage in (Stage.HOST, Stage.BETWEEN)}
    times[Stage.DEVICE] = max(slow.part_ms(Stage.DEVICE), alone_ms)
    for stage in times:
        times[stage] += sum(one.line.parts_ms.get(stage, 0.0) for one in many)
    return Effect.of_stages(times, StepWork.SLOW_CALLS)


def _ceiling(slow: SlowCalls, stage: Stage, own_ms: float) -> float:
    """Return what sampled calls may take of a part: as much as their samples allow for, within Python's time there.

    That is one standard error more than they show; the number of samples is a Poisson count, whose standard
    error is its root.
    """
    seen, time_ms = sum(line.seen for line in slow.lines), slow.part_ms(stage)
    if not seen or not time_ms:
        return 0.0
    return max(time_ms, min(own_ms, time_ms * (1.0 + 1.0 / sqrt(seen))))


def _input(slow: SlowCalls, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return the waits for the pipelines that the calls build."""
    waits_ms, all_ms = slow.part_ms(Stage.INPUT), breakdown[Stage.INPUT]
    if not waits_ms or not all_ms:
        return ()
    return (Effect(Stage.INPUT, max(0.0, 1.0 - waits_ms / all_ms), bound=Bound.AT_MOST),)


def example(  # noqa: PLR0913 - the calls, and all that says what a change may spare with them
    *lines: SlowLine,
    step: Breakdown | None = None,
    long: LongStepLines | None = None,
    single: SingleOperations | None = None,
    body: LoopBody | None = None,
    examples: SingleCalls | None = None,
    phases: RunPhases | None = None,
    run: RunSteps | None = None,
) -> Verdict:
    """Judge these lines of a loop, of which 30 steps were sampled."""
    whole = step or Breakdown.of(between=153.0, host=5.0, device=10.0)
    slow = SlowCalls(lines, 30)
    writing = Writing.measure(slow, whole, phases, run)
    return check(slow, whole, long, single, body, examples, writing)


def sick() -> Verdict:
    """A reinforcement learning step calls predict on one batch: 150 of 168 ms."""
    at = Location("train.py", 51)
    return example(SlowLine(at, SlowCall.PREDICT, 60, 29, {Stage.BETWEEN: 150.0}))


def healthy() -> Verdict:
    """The same loop calls predict_on_batch."""
    return example(step=Breakdown.of(between=2.0, host=2.0, device=10.0))
