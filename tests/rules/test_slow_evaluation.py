"""slow-evaluation: loops of short calls and metrics in Python are found, one long evaluation is not."""

from tests.rules.kit import *
from tests.rules.run_facts import line, made
from tfdoctor.rules.run import slow_evaluation
from tfdoctor.rules.run.slow_evaluation import check

AT = Location("evaluate.py", 31)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 110_000.0, epochs: int = 0
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    times = {Phase.EVALUATION: sum(call.ms for call in calls)}
    for one in lines:
        times[one.phase] = times.get(one.phase, 0.0) + one.ms
    return check(divided_run(total_ms, times, *lines), RunCalls(calls, epochs), None)


def sick() -> Verdict:
    """A loop calls evaluate for each of 600 batches after the training: 30 of 110 s."""
    each = {"looped": True, "examples": 32.0, "batches": 1.0, "after_training": True}
    return example(made_call(RunCall.EVALUATE, AT, 600, 50.0, **each))


def healthy() -> Verdict:
    """One call evaluates 50,000 examples in 24 s: 15 ms for each batch of 32."""
    call = made_call(RunCall.EVALUATE, AT, 1, 24_000.0, examples=50_000.0, batches=1563.0)
    return example(call, total_ms=104_000.0)


judged = partial(example, total_ms=100_000.0)


def evaluated(count: int, each_ms: float, **given: Any) -> MadeCall:
    return made(RunCall.EVALUATE, 31, count, each_ms, **given)


def test_a_loop_over_batches_could_be_one_call() -> None:
    verdict = as_finding(judged(evaluated(600, 50.0, looped=True, examples=32.0, after_training=True)))
    assert "600 times at train.py:31" in verdict.summary
    assert verdict.remedies[0].at == Location("train.py", 31)
    assert verdict.run_effects[0].of.value == near(30_000.0)


def test_small_batches_of_a_small_model_are_found() -> None:
    (effect, *_) = as_finding(judged(evaluated(2, 10_045.0, examples=320_000.0, batches=10_000.0))).run_effects
    assert (effect.of.value, effect.scales) == near((20_000.0, 32 / 512))


def test_evaluations_that_have_to_be_made_are_healthy() -> None:
    for call in (
        evaluated(1, 60_000.0, examples=50_000.0, batches=1563.0),  # big and necessary: 38 ms a batch
        evaluated(1, 60_000.0),  # of a dataset, whose batches are not known
        evaluated(10, 3_000.0, looped=True),  # ten folds
        evaluated(2, 10_045.0, examples=320_000.0, batches=10_000.0, within=RunCall.EPOCH),
    ):
        assert isinstance(judged(call), Healthy)
    assert isinstance(judged(evaluated(40, 200.0, looped=True), epochs=40), Healthy)  # after each epoch


def test_metrics_in_python_are_found_during_and_after_evaluation() -> None:
    for phase in (Phase.EVALUATION, Phase.END):
        verdict = as_finding(judged(lines=(line(phase, 50, 30_000.0),)))
        assert "train.py:50" in verdict.summary
        assert verdict.run_effects[0].phase is phase


def test_one_call_for_all_results_is_necessary() -> None:
    for calls, repeats in (
        ("sklearn.metrics._ranking.roc_auc_score", False),
        ("", False),
        ("", None),
        ("matplotlib.pyplot.savefig", True),
    ):
        done = line(Phase.END, 50, 30_000.0, calls, repeats=repeats)
        assert isinstance(judged(evaluated(1, 900.0), lines=(done,)), Healthy)


def test_what_is_missing_is_said() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(slow_evaluation, part, RunCalls(())) == NotApplicable(reason="only a window was traced")
    run = RunPhases(total_ms=1.0, times={Phase.STEPS: 1.0})
    assert isinstance(applied(slow_evaluation, run, RunCalls((), fits=1)), Healthy)
    assert isinstance(applied(slow_evaluation, run, RunCalls(())), NotApplicable)  # it may, in code of its own
    ended = RunPhases(total_ms=1.0, times={Phase.STEPS: 1.0}, ended_early=True)
    assert applied(slow_evaluation, ended, RunCalls(())) == NotApplicable(
        reason="the run evaluates no model before it was ended, after its traced steps"
    )
