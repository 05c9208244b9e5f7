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

BY_HAND = "how the results of single evaluations go together is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""

WITHIN_FIT = (RunCall.FIT, RunCall.EPOCH)
"""Calls around a validation, which epoch-boundary checks."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow evaluations are reported: both limits must be reached by what a change saves."""

    share: float = share_limit(
        0.05, "Smallest share of the run that fewer and larger calls save, as of other savings"
    )
    least_ms: float = limit(1000.0, "Shortest time in ms that they save; below a second nobody waits for it")


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


def check(phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = Limits()) -> Verdict:
    """Find evaluations whose time goes into many calls and batches, or into Python."""
    made = [call for call in calls.of(RunCall.EVALUATE) if call.within not in WITHIN_FIT]
    found = call_overheads(calls, RunCall.EVALUATE, phases.at(Phase.EVALUATION), steps.count if steps else 0)
    lost = LostTime.of(
        phases,
        [one for one in found if one.call in made or one.kind is OverheadKind.CALL],
        # Metrics are computed during evaluations, and after the last one.
        line_groups(phases.at(Phase.EVALUATION, Phase.END)),
        max(limits.least_ms, limits.share * phases.total_ms),
    )
    if not made and not lost.python and not phases.of(Phase.EVALUATION):
        if phases.until or not calls.fits:  # of a loop in Python, only some ways to do it are seen
            return NotApplicable(reason=f"the run evaluates no model{phases.until}")
        return Healthy(summary="The run evaluates no model", concern=Concern.RUN)
    measures = lost.measures("evaluation", Phase.EVALUATION)
    if not lost.slow and not lost.python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=lost.summary("Results"),
        evidence=(*measures, *lost.tables),
        remedies=tuple(_remedies(lost)),
        run_effects=lost.effects(Phase.EVALUATION, calls),
        concern=Concern.RUN,
        about=RunCall.EVALUATE if lost.slow else None,
    )


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of evaluation, and how many calls it is."""
    time_ms, share = phases.of(Phase.EVALUATION), phases.share(Phase.EVALUATION)
    text = f"Evaluation takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text}, of it {milliseconds(sum(call.ms for call in made))} in {calls} outside of fit"


def _remedies(lost: LostTime) -> Iterator[Remedy]:
    for one in lost.slow[:SHOWN]:
        batches = one.kind is OverheadKind.BATCH
        action = "Evaluate in larger batches" if batches else "Evaluate all examples with one call"
        yield Remedy(action, code_at(one.at, ALL_AT_ONCE), one.at)
    for group in lost.python[:SHOWN]:
        action, code = "Compute metrics with the arrays of all results", METRICS
        if group.work is CalledWork.MODEL:
            action = "Evaluate with one call, or call the model and its metrics in a tf.function"
            code = f"{ALL_AT_ONCE}\n# or\n{COMPILED}"
        yield Remedy(action, code_at(group.at, code), group.at)


AT = Location("evaluate.py", 31)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 110_000.0, epochs: int = 0
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    times = {Phase.EVALUATION: sum(call.ms for call in calls)}
    for line in lines:
        times[line.phase] = times.get(line.phase, 0.0) + line.ms
    return check(RunPhases.divided(total_ms, times, *lines), RunCalls(calls, epochs), None)


def sick() -> Verdict:
    """A loop calls evaluate for each of 600 batches after the training: 30 of 110 s."""
    each = {"looped": True, "examples": 32.0, "batches": 1.0, "after_training": True}
    return example(MadeCall.of(RunCall.EVALUATE, AT, 600, 50.0, **each))


def healthy() -> Verdict:
    """One call evaluates 50,000 examples in 24 s: 15 ms for each batch of 32."""
    call = MadeCall.of(RunCall.EVALUATE, AT, 1, 24_000.0, examples=50_000.0, batches=1563.0)
    return example(call, total_ms=104_000.0)
