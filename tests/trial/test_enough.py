"""The plan of a trial's runs follows from the step: slow steps need no minute a run."""

from tests.trial.kit import *

START_S = 8.0


@each(0.5, 1.0, 1.5, 3.0, 5.0)
def test_ten_minutes_hold_three_rounds_of_slow_steps(step_s: float) -> None:
    """A first run, then as it is, a variant and as it is."""
    plan = Enough.of(step_s, step_s, START_S)
    assert 10 * (START_S + plan.planned_s(step_s, step_s)) <= 600


@given(st.floats(1e-5, 100.0), st.integers(1, 100))
def test_every_plan_can_be_fulfilled(step_s: float, calls_of: int) -> None:
    plan = Enough.of(step_s, step_s * calls_of, START_S)
    assert FEWEST_TIMED <= plan.fewest <= plan.steps
    assert plan.compare_at >= FEWEST_WARM
    assert plan.planned_s(step_s, step_s * calls_of) < min(plan.most_seconds, plan.limit_s - START_S)


def test_short_steps_are_compared_after_twenty() -> None:
    plan = Enough.of(0.01, 0.01, START_S)
    assert (plan.compare_at, plan.fewest, plan.steps) == (20, 15, 50)


def test_a_run_beside_others_has_as_much_time_of_its_own() -> None:
    """The agent's clock goes on while the run is stopped; the limit is of the time in which it computes."""
    alone = Enough.of(0.1, 0.1, 10.0)
    beside = alone.beside(4)
    assert (beside.seconds, beside.most_seconds) == (4 * alone.seconds, 4 * alone.most_seconds)
    assert (beside.steps, beside.limit_s, alone.beside(1)) == (alone.steps, alone.limit_s, alone)
