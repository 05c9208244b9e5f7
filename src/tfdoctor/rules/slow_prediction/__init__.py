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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run_work.call_overhead import OverheadKind, call_overheads
from tfdoctor.facts.run_work.called_work import CalledWork
from tfdoctor.facts.run_work.line_groups import line_groups
from tfdoctor.facts.run_work.lost_time import LostTime, code_at
from tfdoctor.terms.humanize import milliseconds, number, percent
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Concern, Finding, Healthy, Location, NotApplicable, Remedy, Verdict

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "whether an input depends on the last prediction is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow predictions are reported: both limits must be reached by what a change saves."""

    share: float = share_limit(
        0.05, "Smallest share of the run that fewer and larger calls save, as of other savings"
    )
    least_ms: float = limit(1000.0, "Shortest time in ms that they save; below a second nobody waits for it")


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


def check(phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = Limits()) -> Verdict:
    """Find predictions whose time goes into many calls and batches, or into Python."""
    made = calls.of(RunCall.PREDICT)
    if not made and not phases.of(Phase.PREDICTION):
        if phases.until or not calls.fits:  # of a loop in Python, only some ways to do it are seen
            return NotApplicable(reason=f"the run makes no predictions{phases.until}")
        return Healthy(summary="The run makes no predictions", concern=Concern.RUN)
    lost = LostTime.of(
        phases,
        call_overheads(calls, RunCall.PREDICT, phases.at(Phase.PREDICTION), steps.count if steps else 0),
        line_groups(phases.at(Phase.PREDICTION)),
        max(limits.least_ms, limits.share * phases.total_ms),
    )
    measures = lost.measures("prediction", Phase.PREDICTION)
    if not lost.slow and not lost.python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=lost.summary("Predictions"),
        evidence=(*measures, *lost.tables),
        remedies=tuple(_remedies(lost)),
        run_effects=lost.effects(Phase.PREDICTION, calls),
        concern=Concern.RUN,
        about=RunCall.PREDICT if lost.slow else None,
    )


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of prediction, and how many calls it is."""
    time_ms, share = phases.of(Phase.PREDICTION), phases.share(Phase.PREDICTION)
    text = f"Prediction takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text} in {calls}, {milliseconds(sum(call.ms for call in made) / times)} each"


def _remedies(lost: LostTime) -> Iterator[Remedy]:
    for one in lost.slow[:SHOWN]:
        if one.kind is OverheadKind.BATCH:
            yield Remedy("Predict in larger batches", code_at(one.at, LARGE), one.at)
        else:
            yield Remedy(ONE_CALL, code_at(one.at, ALL_AT_ONCE), one.at, ONCE)
            yield Remedy(
                DEPENDENT,
                code_at(one.at, COMPILED),
                one.at,
                "predict-on-batch",
                changes="all rows of a call go through the model at once",
            )
    for group in lost.python[:SHOWN]:
        action, code = "Compute with the array of all predictions", ARRAYS
        if group.work is CalledWork.MODEL:
            action = f"{ONE_CALL}, or call the model in a tf.function"
            code = f"{ALL_AT_ONCE}\n# or\n{COMPILED}"
        yield Remedy(action, code_at(group.at, code), group.at)


ONE_CALL = "Predict all examples with one call"

DEPENDENT = "Where an input depends on the last prediction, call predict_on_batch, or the model in a tf.function"


ONCE = "predict-once"
"""The edit of this rule."""


AT = Location("predict.py", 20)


def example(
    *calls: MadeCall,
    lines: tuple[RunLine, ...] = (),
    total_ms: float = 50_000.0,
    epochs: int = 0,
    steps: RunSteps | None = None,
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    predicting = sum(one.ms for one in calls) + sum(one.ms for one in lines)
    phases = RunPhases.divided(total_ms, {Phase.PREDICTION: predicting}, *lines)
    return check(phases, RunCalls(calls, epochs), steps)


def sick() -> Verdict:
    """A loop calls predict for each of 1,000 examples: 40 of 50 s."""
    return example(MadeCall.of(RunCall.PREDICT, AT, 1_000, 40.0, looped=True, examples=1.0))


def healthy() -> Verdict:
    """One call predicts 100,000 examples in 12 s, in batches of 256."""
    call = MadeCall.of(RunCall.PREDICT, AT, 1, 12_000.0, examples=100_000.0, batches=391.0)
    return example(call, total_ms=22_000.0)
