"""Evaluation works in small pieces, or in Python.

## What it checks

The calls of `evaluate` and `test_on_batch` in the whole run, by the user's line: how often a loop makes them, how
long each takes, for how many examples, and in how many batches. Reported are loops of at least 20 short calls,
made neither once per epoch nor once in each training step, and batches so small that starting operations takes most
of their time. Stack samples show loops that call a model from Python, outside of a `tf.function`, and metrics that
are computed item by item in Python, during an evaluation or after the last one.

The validation within `fit` is checked by epoch-boundary. One `evaluate` over a whole data set is necessary
work, however long it takes.

## Why it matters

Each call of `evaluate` builds an input pipeline, an iterator and callbacks: 42 to 49 ms with Keras 3 on a CPU, and
each batch takes 0.4 ms besides what it computes. Metrics of NumPy, scikit-learn and Keras take all results at once.

## How to fix

- Call `evaluate` once for all examples, with a large `batch_size`: no gradients are kept, so that larger batches
  than in training fit.
- Where batches come from a loop, call the model in a `tf.function`, with metrics of Keras in it.
- Compute metrics with the arrays of all labels and predictions.

## Holds for

Recordings of the whole run by `tfdoctor profile`, with Keras 2 and 3. From 20 stack
samples on, what TensorFlow executes of a call is taken to remain, and all else to be spared. With fewer samples the
measured fixed times are used: most of a call of up to three times as long, and that much of a longer one. The time
of a line in Python is its share of the stack samples.

## Sources

- [Model training APIs: evaluate](https://keras.io/api/models/model_training_apis/#evaluate-method)
- [Writing a training loop from scratch: validation](https://www.tensorflow.org/guide/keras/writing_a_training_loop_from_scratch)
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

BY_HAND = "how the results of single evaluations go together is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""

WITHIN_FIT = (RunCall.FIT, RunCall.EPOCH)
"""Calls around a validation, which epoch-boundary checks."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow evaluations are reported: both limits must be reached by what a change saves."""

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
results = model.evaluate(x, y, batch_size=512, return_dict=True)  # all examples, one call"""

COMPILED = """\
@tf.function(reduce_retracing=True)
def evaluate_batch(x, y):
    accuracy.update_state(y, model(x, training=False))  # a metric of Keras

for x, y in dataset.batch(512):
    evaluate_batch(x, y)
print(accuracy.result())"""

METRICS = """\
accuracy = np.mean(labels == predictions.argmax(axis=-1))  # all results at once, no loop over them"""


def check(
    phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = LIMITS
) -> Verdict:
    """Find evaluations whose time goes into many calls and batches, or into Python."""
    made = [call for call in calls.of(RunCall.EVALUATE) if call.within not in WITHIN_FIT]
    loops = [group for group in _sampled(phases) if _is_loop(group)]
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    python = [group for group in loops if group.ms >= least_ms]
    if not made and not python and not phases.of(Phase.EVALUATION):
        return NotApplicable(reason="the run evaluates no model")
    found = call_overheads(
        calls, RunCall.EVALUATE, phases.at(Phase.EVALUATION), steps.count if steps else 0
    )
    small = [one for one in found if one.call in made or one.kind is OverheadKind.CALL]
    longest_ms = max([*(one.saved_ms for one in small), *(one.ms for one in loops)], default=0.0)
    measures = (
        Measure("time of evaluation", ms(phases.of(Phase.EVALUATION))),
        Measure("longest time that a change at one line saves", ms(longest_ms), ms(least_ms)),
    )
    slow = [one for one in small if one.saved_ms >= least_ms]
    if not slow and not python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=_summary(slow, python, phases),
        evidence=(
            *measures,
            *call_table([one.call for one in slow], phases.total_ms),
            *line_table(python, phases.total_ms),
        ),
        remedies=(*map(_remedy, slow[:SHOWN]), *map(_of_group, python[:SHOWN])),
        run_effects=(*(_effect(one, calls) for one in slow), *map(_of_loop, python)),
        severity=None if slow else _severity(python, phases),
        concern=Concern.RUN,
    )


def _sampled(phases: RunPhases) -> tuple[LineGroup, ...]:
    """Return what samples show of evaluations, and after the last one: there metrics are computed."""
    return line_groups(phases.at(Phase.EVALUATION, Phase.END))


def _is_loop(group: LineGroup) -> bool:
    known = group.work is CalledWork.MODEL or group.work in ONE_BY_ONE
    return known and group.at is not None and any(line.repeats for line in group.lines)


def _severity(python: Sequence[LineGroup], phases: RunPhases) -> Severity:
    """Return at most a warning: samples do not tell how many examples a call of the model gets."""
    share = sum(group.ms for group in python) / phases.total_ms
    return min(Severity.WARNING, Severity.of(share))


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of evaluation, and how many calls it is."""
    time_ms, share = phases.of(Phase.EVALUATION), phases.share(Phase.EVALUATION)
    text = f"Evaluation takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text}, of it {milliseconds(sum(call.ms for call in made))} in {calls} outside of fit"


def _summary(slow: Sequence[CallOverhead], python: Sequence[LineGroup], phases: RunPhases) -> str:
    if not slow:
        return _of_python(python[0], phases)
    call, share = slow[0].call, percent(slow[0].call.ms / phases.total_ms)
    name, at = call_name(call), location(call.at)
    time = f"{milliseconds(call.ms)} ({share} of the run), {milliseconds(call.each_ms)} each"
    if slow[0].kind is OverheadKind.CALL:
        return f"A loop calls {name} {number(call.count)} times at {at}, which takes {time}"
    rows = number(rows_per_batch(call))
    return f"{name} at {at} works in batches of {rows} examples, which takes {time}"


def _of_python(group: LineGroup, phases: RunPhases) -> str:
    time = f"{milliseconds(group.ms)} ({percent(group.ms / phases.total_ms)} of the run)"
    if group.work is CalledWork.MODEL:
        return f"A loop calls the model from Python at {location(group.at)}, operation by operation: {time}"
    return f"Results are processed one by one in Python at {location(group.at)}: {time}"


def _remedy(one: CallOverhead) -> Remedy:
    batches = one.kind is OverheadKind.BATCH
    action = "Evaluate in larger batches" if batches else "Evaluate all examples with one call"
    return Remedy(action, _at(one.at, ALL_AT_ONCE), one.at)


def _of_group(group: LineGroup) -> Remedy:
    if group.work is CalledWork.MODEL:
        action = "Evaluate with one call, or call the model and its metrics in a tf.function"
        return Remedy(action, _at(group.at, f"{ALL_AT_ONCE}\n# or\n{COMPILED}"), group.at)
    return Remedy(
        "Compute metrics with the arrays of all results", _at(group.at, METRICS), group.at
    )


def _at(at: Location | None, code: str) -> str:
    return f"# {location(at)}\n{code}"


def _effect(one: CallOverhead, calls: RunCalls) -> RunEffect:
    return RunEffect(
        phase=Phase.EVALUATION,
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
    """A loop calls evaluate for each of 600 batches after the training: 30 of 110 s."""
    return _example(count=600, total_ms=30_000.0, examples=32.0, looped=True)


def healthy() -> Verdict:
    """One call evaluates 50,000 examples in 24 s: 15 ms for each batch of 32."""
    return _example(count=1, total_ms=24_000.0, examples=50_000.0, batches=1563.0)


def _example(
    *, count: int, total_ms: float, examples: float, batches: float = 1.0, looped: bool = False
) -> Verdict:
    call = MadeCall(
        call=RunCall.EVALUATE,
        name="Model.evaluate",
        at=Location("evaluate.py", 31),
        count=count,
        ms=total_ms,
        looped=looped,
        examples=examples,
        batches=batches,
        after_training=True,
    )
    times = {Phase.IMPORTS: 8_000.0, Phase.STEPS: 72_000.0, Phase.EVALUATION: total_ms}
    phases = RunPhases(total_ms=sum(times.values()), times=times)
    return check(phases, RunCalls((call,)), None)
