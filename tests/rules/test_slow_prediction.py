"""slow-prediction: many short calls and single examples are found, one call over all data is not."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_prediction import check

EXAMPLE_AT = Location("predict.py", 20)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 50_000.0, epochs: int = 0
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    predicting = sum(one.ms for one in calls) + sum(one.ms for one in lines)
    phases = divided_run(total_ms, {Phase.PREDICTION: predicting}, *lines)
    return check(phases, RunCalls(calls, epochs))


def healthy() -> Verdict:
    """One call predicts 100,000 examples in 12 s, in batches of 256."""
    call = made_call(RunCall.PREDICT, EXAMPLE_AT, 1, 12_000.0, examples=100_000.0, batches=391.0)
    return example(call, total_ms=22_000.0)


def predicted(count: int, each_ms: float, **given: Any) -> MadeCall:
    return calls_at(RunCall.PREDICT, 20, count, each_ms, **given)


sick = described(
    "A loop calls predict for each of 1,000 examples: 40 of 50 s.",
    example,
    made_call(RunCall.PREDICT, EXAMPLE_AT, 1_000, 40.0, looped=True, examples=1.0),
)
judged = partial(example, total_ms=60_000.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    short = predicted(1000, 40.0, looped=True)
    told["a loop of short calls could be one"] = judged(short)
    told["of calls that compute only the fixed time counts"] = judged(predicted(100, 350.0, looped=True))
    predicts = replace(at_line(Phase.PREDICTION, 20, 40_000.0, "Model.predict"), exact=True)
    for ran in (8_000.0, 39_000.0):
        lines = divided_run(60_000.0, {Phase.PREDICTION: 40_000.0}, replace(predicts, executes_ms=ran))
        told[f"{ran:,.0f} of 40,000 ms are executed, and remain"] = check(lines, RunCalls((short,)))
    for name, call in (
        ("one call over everything", predicted(1, 40_000.0, examples=1e6, batches=3906.0)),
        ("an ensemble of 19", predicted(19, 100.0, looped=True)),
        ("calls of Keras, not of a loop of the user's", predicted(1000, 40.0)),
        ("calls of which each computes", predicted(100, 400.0, looped=True)),
        ("a second is saved by no more than a second", predicted(20, 60.0, looped=True)),
        ("batches", predicted(30_000, 1.2, looped=True, name="Model.predict_on_batch", examples=32.0)),
    ):
        told[f"{name}: healthy"] = judged(call)
    told["two predictions in each epoch, and more"] = judged(predicted(30, 100.0, looped=True), epochs=15)
    told[...] = judged(predicted(31, 100.0, looped=True), epochs=15)
    told["a loop in a callback is found"] = judged(predicted(500, 40.0, within=RunCall.EPOCH), epochs=10)
    told["a prediction in each step"] = judged(short, epochs=1)
    told["batches of single examples"] = judged(predicted(1, 9_035.0, examples=4000.0, batches=4000.0))
    slow = predicted(1, 80_035.0, examples=4000.0, batches=4000.0)
    told["single examples that take 20 ms each"] = judged(slow, total_ms=120_000.0)
    told["calls of predict_on_batch with single examples"] = judged(
        predicted(30_000, 0.4, looped=True, name="Model.predict_on_batch", examples=1.0)
    )
    told["a longer training has no more of what follows it"] = judged(replace(short, after_training=True), epochs=5)
    told["a longer training has more of what comes during it"] = judged(short, epochs=5)
    for name, calls in (
        ("a line calls the model", "keras.src.layers.layer.Layer.__call__"),
        ("a line of Python", ""),
        ("trap: a line of a timed call", "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"),
        ("a line that loads", "numpy.load"),
    ):
        told[name] = judged(lines=(at_line(Phase.PREDICTION, 20, 40_000.0, calls),))
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["a part of the run"] = applied(check, part, RunCalls(()))
    run = RunPhases(total_ms=1.0, times={Phase.STEPS: 1.0})
    told["a run that fits without predicting"] = applied(check, run, RunCalls((), fits=1))
    told["a run that may predict in code of its own"] = applied(check, run, RunCalls(()))
