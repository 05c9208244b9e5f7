"""frequent-saving: saves in the middle of epochs are compared with what a failure could lose."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.kit import *
from tests.rules.run_facts import made
from tfdoctor.rules.run import frequent_saving
from tfdoctor.rules.run.frequent_saving import check

AT = Location("train.py", 35)


def example(*calls: MadeCall, total_ms: float = 60_000.0, epochs: int = 10, once_ms: float = 0.0) -> Verdict:
    """Judge a run with these saves, whose other time is in training steps."""
    times = {Phase.SAVING: sum(call.ms for call in calls)}
    phases = replace(divided_run(total_ms, times), once_ms=once_ms)
    return check(phases, RunCalls(calls, epochs))


def sick() -> Verdict:
    """A checkpoint in every fifth of 3,000 steps: 600 times 20 ms of a minute."""
    return example(made_call(RunCall.SAVE, AT, 600, 20.0, looped=True))


def healthy() -> Verdict:
    """A checkpoint of half a second at the end of each of 10 epochs, in ten minutes."""
    return example(made_call(RunCall.SAVE, AT, 10, 500.0, looped=True), total_ms=600_000.0)


def saved(count: int, each_ms: float, **given: Any) -> MadeCall:
    return made(RunCall.SAVE, 35, count, each_ms, **given)


def test_a_checkpoint_in_every_fifth_step_is_too_often() -> None:
    verdict = as_finding(example(saved(600, 20.0, looped=True)))
    assert "600 times, 20.0 ms each: 12 s (20 % of the run), once every 0.1 s" in verdict.summary
    assert verdict.remedies[0].at == Location("train.py", 35)
    assert verdict.remedies[0].action == "Save about every 12 s"
    (effect,) = verdict.run_effects
    assert (effect.phase, effect.of.value, effect.times) == (Phase.SAVING, 12_000.0, 600)
    assert effect.scales == pytest.approx(100.0 / sqrt(2 * 20.0 * 3.6e6))


SHORT: dict[str, Any] = {"total_ms": 12_000.0, "once_ms": 10_000.0, "epochs": 6}


test_saves_that_have_to_be_are_healthy = each_is(
    (example(saved(20, 500.0)), Healthy),  # the last and the best weights of each of ten epochs
    (example(saved(21, 140.0)), Healthy),  # less than 5 % of the run
    (example(saved(600, 20.0, before_training=True)), Healthy),
    (example(saved(600, 20.0, after_training=True)), Healthy),  # an export of many models
    (example(saved(2, 6_000.0)), Healthy),  # at two places of a script, in a loop or not
    (example(saved(24, 4.0), **SHORT), Healthy),
    # Every five minutes, as a failure each hour asks for
    (example(saved(24, 5_000.0), total_ms=7_200_000.0, epochs=1), Healthy),
)


def test_a_short_run_of_a_training_is_judged_by_the_share_of_its_saves() -> None:
    """Every fifth of 120 steps of 12 ms saves for 24 ms, beside ten seconds of imports."""
    assert as_finding(example(saved(24, 24.0), **SHORT)).run_effects[0].of.value == pytest.approx(576.0)


RUN = RunPhases(total_ms=100.0, times={Phase.STEPS: 100.0})
WINDOW = replace(RUN, whole=False, missing="no log")

test_without_saves_a_run_of_fit_is_healthy_and_a_loop_or_a_window_is_not_judged = each_is(
    (applied(frequent_saving, RUN, RunCalls((), fits=1)), Healthy),
    (applied(frequent_saving, RUN, RunCalls(())), NotApplicable),  # it may save by code of its own, unseen
    (applied(frequent_saving, WINDOW, RunCalls((), fits=1)), NotApplicable),
)


@given(st.floats(0.01, 1e5), st.integers(3, 10**6))
def test_what_is_saved_is_never_more_than_the_saves_take(each_ms: float, number: int) -> None:
    verdict = example(saved(number, each_ms), total_ms=2 * number * each_ms)
    for effect in verdict.run_effects if isinstance(verdict, Finding) else ():
        assert 0.0 <= effect.scales < 1.0
        assert effect.of.value == pytest.approx(number * each_ms)
