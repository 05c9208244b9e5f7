"""Predictions are made one by one.

## What it checks

The calls of `predict` and `predict_on_batch` in the whole run, by the user's line: how often a loop makes them, how
long each takes, for how many examples, and in how many batches. A loop with at least 20 short calls, made neither
once per epoch nor once in each training step, is reported, and so are batches of a few examples. Stack
samples show loops that call a model from Python, outside of a `tf.function`, and loops in Python beside it.

## Why it matters

Each call of `predict` builds an input pipeline, an iterator and callbacks: 31 to 45 ms with Keras 3 on a CPU,
however small the model is. One call for 3,200 rows of the same model took 82 ms, and 41 ms in batches of 512. A
model that is called from Python starts each of its operations from there.

## How to fix

- Collect the inputs, and call `predict` once for all of them, with a large `batch_size`.
- Where an input depends on the last prediction, call the model in a `tf.function`, or `predict_on_batch`.
- Give `predict` a dataset that is batched, not single examples.

## Holds for

Recordings of the whole run by `tfdoctor profile`, with Keras 2 and 3. From 20 stack
samples on, what TensorFlow executes of a call is taken to remain, and all else to be spared. With fewer samples the
measured fixed times are used: most of a call of up to three times as long, and that much of a longer one. The time
of a line in Python is its share of the stack samples.

## Sources

- [Keras FAQ: predict() and calling a model](https://keras.io/getting_started/faq/#whats-the-difference-between-model-methods-predict-and-call)
- [Model training APIs: predict](https://keras.io/api/models/model_training_apis/#predict-method)
- [Better performance with tf.function](https://www.tensorflow.org/guide/function)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run_work.call_overhead import (
    CallOverhead,
    OverheadKind,
    call_overheads,
    recurrence,
    rows_per_batch,
)
from tfdoctor.facts.run_work.called_work import ONE_BY_ONE, CalledWork
from tfdoctor.facts.run_work.line_groups import LineGroup, line_groups
from tfdoctor.facts.run_work.run_tables import call_name, call_table, line_table
from tfdoctor.humanize import location, milliseconds, number, percent
from tfdoctor.kinds import Phase, RunCall
from tfdoctor.preconditions import whole_run
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms
from tfdoctor.verdict import (
    Bound,
    Concern,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    RunEffect,
    Severity,
    Verdict,
)

TOPIC = Topic.RUN
SINCE = "0.1.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "whether an input depends on the last prediction is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow predictions are reported: both limits must be reached by what a change saves."""

    share: float = limit(
        0.05,
        "Smallest share of the run that fewer and larger calls save, as of other savings",
        most=1.0,
    )
    least_ms: float = limit(
        1000.0, "Shortest time in ms that they save; below a second nobody waits for it"
    )


LIMITS = Limits()

ALL_AT_ONCE = """\
predictions = model.predict(np.stack(examples), batch_size=256, verbose=0)  # predictions[i] is of examples[i]"""

COMPILED = """\
@tf.function(reduce_retracing=True)
def predict_one(x):
    return model(x, training=False)

prediction = predict_one(tf.convert_to_tensor(x)).numpy()"""

LARGE = """\
predictions = model.predict(x, batch_size=512)"""

ARRAYS = """\
classes = predictions.argmax(axis=-1)  # NumPy for all predictions, no loop over them"""


def check(
    phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = LIMITS
) -> Verdict:
    """Find predictions whose time goes into many calls and batches, or into Python."""
    made = calls.of(RunCall.PREDICT)
    if not made and not phases.of(Phase.PREDICTION):
        return NotApplicable(reason="the run makes no predictions")
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    small = call_overheads(
        calls, RunCall.PREDICT, phases.at(Phase.PREDICTION), steps.count if steps else 0
    )
    loops = [group for group in line_groups(phases.at(Phase.PREDICTION)) if _is_loop(group)]
    longest_ms = max([*(one.saved_ms for one in small), *(one.ms for one in loops)], default=0.0)
    measures = (
        Measure("time of prediction", ms(phases.of(Phase.PREDICTION))),
        Measure("longest time that a change at one line saves", ms(longest_ms), ms(least_ms)),
    )
    slow = [one for one in small if one.saved_ms >= least_ms]
    python = [group for group in loops if group.ms >= least_ms]
    if not slow and not python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=_summary(slow, python, phases),
        evidence=(
            *measures,
            *call_table([one.call for one in slow], phases.total_ms),
            *line_table(python, phases.total_ms),
        ),
        remedies=tuple(_remedies(slow, python)),
        run_effects=(*(_effect(one, calls) for one in slow), *map(_of_loop, python)),
        severity=None if slow else _severity(python, phases),
        concern=Concern.RUN,
    )


def _is_loop(group: LineGroup) -> bool:
    known = group.work is CalledWork.MODEL or group.work in ONE_BY_ONE
    return known and group.at is not None and any(line.repeats for line in group.lines)


def _severity(python: Sequence[LineGroup], phases: RunPhases) -> Severity:
    """Return at most a warning: samples do not tell how many examples a call of the model gets."""
    share = sum(group.ms for group in python) / phases.total_ms
    return min(Severity.WARNING, Severity.of(share))


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of prediction, and how many calls it is."""
    time_ms, share = phases.of(Phase.PREDICTION), phases.share(Phase.PREDICTION)
    text = f"Prediction takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text} in {calls}, {milliseconds(sum(call.ms for call in made) / times)} each"


def _summary(slow: Sequence[CallOverhead], python: Sequence[LineGroup], phases: RunPhases) -> str:
    if not slow:
        return _of_python(python[0], phases)
    first = slow[0]
    call, share = first.call, percent(first.call.ms / phases.total_ms)
    time = f"{milliseconds(call.ms)} ({share} of the run), {milliseconds(call.each_ms)} each"
    if first.kind is OverheadKind.CALL:
        return (
            f"A loop calls {call_name(call)} {number(call.count)} times at {location(call.at)}, "
            f"which takes {time}"
        )
    rows = number(rows_per_batch(call))
    return f"{call_name(call)} at {location(call.at)} works in batches of {rows} examples, which takes {time}"


def _of_python(group: LineGroup, phases: RunPhases) -> str:
    time = f"{milliseconds(group.ms)} ({percent(group.ms / phases.total_ms)} of the run)"
    if group.work is CalledWork.MODEL:
        return f"A loop calls the model from Python at {location(group.at)}, operation by operation: {time}"
    return f"Predictions are processed one by one in Python at {location(group.at)}: {time}"


def _remedies(slow: Sequence[CallOverhead], python: Sequence[LineGroup]) -> list[Remedy]:
    found = []
    for one in slow[:SHOWN]:
        if one.kind is OverheadKind.BATCH:
            found.append(Remedy("Predict in larger batches", _at(one.at, LARGE), one.at))
            continue
        found += [
            Remedy("Predict all examples with one call", _at(one.at, ALL_AT_ONCE), one.at, ONCE),
            Remedy(
                "Where an input depends on the last prediction, call the model in a tf.function",
                _at(one.at, COMPILED),
                one.at,
            ),
        ]
    return found + [_of_group(group) for group in python[:SHOWN]]


ONCE = "predict-once"
"""The edit of this rule."""


def _of_group(group: LineGroup) -> Remedy:
    if group.work is CalledWork.MODEL:
        action = "Predict all examples with one call, or call the model in a tf.function"
        return Remedy(action, _at(group.at, f"{ALL_AT_ONCE}\n# or\n{COMPILED}"), group.at)
    return Remedy("Compute with the array of all predictions", _at(group.at, ARRAYS), group.at)


def _at(at: Location | None, code: str) -> str:
    return f"# {location(at)}\n{code}"


def _effect(one: CallOverhead, calls: RunCalls) -> RunEffect:
    return RunEffect(
        phase=Phase.PREDICTION,
        of=ms(one.of_ms),
        subject=location(one.at),
        scales=one.left,
        recurs=recurrence(one.call, calls),
        times=one.call.count,
        bound=one.bound,
    )


def _of_loop(group: LineGroup) -> RunEffect:
    return RunEffect(
        phase=group.phase, of=ms(group.ms), subject=location(group.at), bound=Bound.AT_MOST
    )


def sick() -> Verdict:
    """A loop calls predict for each of 1,000 examples: 40 of 50 s."""
    return _example(count=1_000, total_ms=40_000.0, examples=1.0, looped=True)


def healthy() -> Verdict:
    """One call predicts 100,000 examples in 12 s, in batches of 256."""
    return _example(count=1, total_ms=12_000.0, examples=100_000.0, batches=391.0)


def _example(
    *,
    count: int,
    total_ms: float,
    examples: float,
    batches: float = 1.0,
    looped: bool = False,
) -> Verdict:
    call = MadeCall(
        call=RunCall.PREDICT,
        name="Model.predict",
        at=Location("predict.py", 20),
        count=count,
        ms=total_ms,
        looped=looped,
        examples=examples,
        batches=batches,
    )
    times = {Phase.IMPORTS: 8_000.0, Phase.BUILDING: 2_000.0, Phase.PREDICTION: total_ms}
    phases = RunPhases(total_ms=sum(times.values()), times=times)
    return check(phases, RunCalls((call,)), None)
