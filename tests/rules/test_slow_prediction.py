"""slow-prediction: many short calls and single examples are found, one call over all data is not."""

from tests.rules.kit import *
from tests.rules.run_facts import line, made, steps
from tfdoctor.rules.run import slow_prediction
from tfdoctor.rules.run.slow_prediction import check

EXAMPLE_AT = Location("predict.py", 20)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 50_000.0, epochs: int = 0,
    steps: RunSteps | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run with these calls and lines, whose other time is in training steps."""
    predicting = sum(one.ms for one in calls) + sum(one.ms for one in lines)
    phases = divided_run(total_ms, {Phase.PREDICTION: predicting}, *lines)
    return check(phases, RunCalls(calls, epochs), steps)


def sick() -> Verdict:
    """A loop calls predict for each of 1,000 examples: 40 of 50 s."""
    return example(made_call(RunCall.PREDICT, EXAMPLE_AT, 1_000, 40.0, looped=True, examples=1.0))


def healthy() -> Verdict:
    """One call predicts 100,000 examples in 12 s, in batches of 256."""
    call = made_call(RunCall.PREDICT, EXAMPLE_AT, 1, 12_000.0, examples=100_000.0, batches=391.0)
    return example(call, total_ms=22_000.0)


AT = Location("train.py", 20)


judged = partial(example, total_ms=60_000.0)


def predicted(count: int, each_ms: float, **given: Any) -> MadeCall:
    return made(RunCall.PREDICT, 20, count, each_ms, **given)


def found(*calls: MadeCall, **given: Any) -> Finding:
    return as_finding(judged(*calls, **given))


def test_a_loop_of_short_calls_could_be_one() -> None:
    finding = found(predicted(1000, 40.0, looped=True))
    assert "1,000 times at train.py:20" in finding.summary
    assert finding.remedies[0].at == AT
    effect = finding.run_effects[0]
    assert (effect.phase, effect.bound) == (Phase.PREDICTION, Bound.AT_MOST)
    assert (effect.of.value, effect.scales) == near((40_000.0, 0.001))


def test_of_calls_that_compute_only_the_fixed_time_counts() -> None:
    effect = found(predicted(100, 350.0, looped=True)).run_effects[0]
    assert effect.bound is Bound.EXPECTED
    assert effect.of.value * (1.0 - effect.scales) == near(3_500.0)


def test_what_samples_show_as_executed_remains() -> None:
    calls = RunCalls((predicted(1000, 40.0, looped=True),))
    at_line = replace(line(Phase.PREDICTION, 20, 40_000.0, "Model.predict"), exact=True)
    short, computing = (
        check(divided_run(60_000.0, {Phase.PREDICTION: 40_000.0}, replace(at_line, executes_ms=ran)), calls, None)
        for ran in (8_000.0, 39_000.0)
    )
    effect = as_finding(short).run_effects[0]
    assert (effect.scales, effect.bound) == (near(0.2), Bound.EXPECTED)
    assert isinstance(computing, Healthy)


def test_calls_that_have_to_be_made_are_healthy() -> None:
    for call in (
        predicted(1, 40_000.0, examples=1e6, batches=3906.0),  # once over everything
        predicted(19, 100.0, looped=True),  # an ensemble
        predicted(1000, 40.0),  # made by Keras, not by a loop of the user's
        predicted(100, 400.0, looped=True),  # each of them computes
        predicted(20, 60.0, looped=True),  # a second is saved by no more than a second
        predicted(30_000, 1.2, looped=True, name="Model.predict_on_batch", examples=32.0),
    ):
        assert isinstance(judged(call), Healthy)


def test_a_prediction_in_each_epoch_is_no_loop_over_examples() -> None:
    thirty, more = (judged(predicted(count, 100.0, looped=True), epochs=15) for count in (30, 31))
    assert kinds(thirty, more) == [Healthy, Finding]


def test_a_loop_in_a_callback_is_found() -> None:
    call = predicted(500, 40.0, within=RunCall.EPOCH)
    assert found(call, epochs=10).run_effects[0].recurs is Recurrence.PER_EPOCH


def test_a_prediction_in_each_step_is_left_to_the_steps() -> None:
    call = predicted(1000, 40.0, looped=True)
    each, others = (judged(call, epochs=1, steps=steps(count, 5.0)) for count in (1000, 400))
    assert kinds(each, others) == [Healthy, Finding]


def test_batches_of_single_examples_are_found() -> None:
    effect = found(predicted(1, 9_035.0, examples=4000.0, batches=4000.0)).run_effects[0]
    assert (effect.of.value, effect.scales) == near((9_000.0, 1 / 32))
    slow = predicted(1, 80_035.0, examples=4000.0, batches=4000.0)  # 20 ms for one example
    assert isinstance(judged(slow, total_ms=120_000.0), Healthy)
    call = predicted(30_000, 0.4, looped=True, name="Model.predict_on_batch", examples=1.0)
    assert found(call).run_effects[0].scales == near(1 / 32)


def test_loops_in_python_have_the_severity_of_their_price() -> None:
    for calls, says in (("keras.src.layers.layer.Layer.__call__", "calls the model"), ("", "processed one by one")):
        finding = found(lines=(line(Phase.PREDICTION, 20, 40_000.0, calls),))
        assert says in finding.summary
        assert finding.severity is None


def test_the_line_of_a_timed_call_is_not_judged_by_its_samples() -> None:
    for calls in ("keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict", "numpy.load"):
        assert isinstance(judged(lines=(line(Phase.PREDICTION, 20, 40_000.0, calls),)), Healthy)


def test_a_longer_training_has_no_more_of_what_comes_after_it() -> None:
    after = found(predicted(1000, 40.0, looped=True, after_training=True), epochs=5)
    during = found(predicted(1000, 40.0, looped=True), epochs=5)
    assert after.run_effects[0].recurs is Recurrence.ONCE
    assert during.run_effects[0].recurs is Recurrence.PER_EPOCH


def test_what_is_missing_is_said() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(slow_prediction, part, RunCalls(())) == NotApplicable(reason="only a window was traced")
    run = RunPhases(total_ms=1.0, times={Phase.STEPS: 1.0})
    assert isinstance(applied(slow_prediction, run, RunCalls((), fits=1)), Healthy)
    assert isinstance(applied(slow_prediction, run, RunCalls(())), NotApplicable)  # it may, in code of its own
