"""The interval of a difference: a gate on it does not fail by chance, and does on a true regression."""

from tests.compare.made import run
from tests.kit import *
from tfdoctor.compare.step_times import ComparedSteps, Interval, block_length, bootstrap_error, step_interval
from tfdoctor.diagnosis.comparison import StepFigure

GATE = math.log(1.05)


@cases((0.01, 1.0, 0, 1), (0.05, 1.0, 0, 1), (0.01, 1.1, 57, 60))
def test_a_gate_fails_for_a_regression_not_by_chance(jitter: float, slower: float, fewest: int, most: int) -> None:
    pairs = ((run(2 * n, jitter), run(2 * n + 1, jitter, step_ms=20 * slower)) for n in range(60))
    assert fewest <= sum(step_interval([first], [last]).low > GATE for first, last in pairs) <= most


def test_runs_that_differ_more_need_several_recordings() -> None:
    """Runs whose speeds differ by 2 %: five of each side show a regression of 10 %."""
    rng = np.random.default_rng(3)

    def side(first: int, slower: float) -> list[ComparedSteps]:
        speeds = np.exp(0.02 * rng.normal(size=5))
        return [run(first + at, 0.05, step_ms=20 * slower * speed) for at, speed in enumerate(speeds)]

    alike = [step_interval(side(10 * k, 1.0), side(10 * k + 5, 1.0)) for k in range(12)]
    slower = [step_interval(side(10 * k, 1.0), side(10 * k + 5, 1.1)) for k in range(12)]
    assert sum(one.low > GATE for one in alike) == 0
    assert sum(one.low > GATE for one in slower) >= 9


@settings(max_examples=20)
@given(st.floats(0.5, 2.0), st.floats(0.1, 100.0), st.integers(0, 50))
def test_the_interval_turns_round_with_the_runs_and_needs_no_unit(factor: float, unit: float, seed: int) -> None:
    first, second = run(seed), run(seed + 1, step_ms=20 * factor)
    there, back = step_interval([first], [second]), step_interval([second], [first])
    assert (there.middle, there.low, there.high) == pytest.approx((-back.middle, -back.high, -back.low))
    scaled = [ComparedSteps(made.times_ms * unit, made.step_ms * unit) for made in (first, second)]
    other = step_interval(scaled[:1], scaled[1:])
    assert (other.low, other.high) == pytest.approx((there.low, there.high), abs=1e-9)


def test_the_interval_holds_what_the_untraced_steps_say() -> None:
    """The traced steps are 30 % slower, the others are not: tracing cost more in one of the runs."""
    before = ComparedSteps(run(0).times_ms, 20.0, untraced_ms=18.0)
    after = ComparedSteps(run(1, step_ms=26).times_ms, 26.0, untraced_ms=18.0)
    assert step_interval([before], [after]).low == pytest.approx(0.0, abs=1e-9)
    unknown = ComparedSteps(after.times_ms, 26.0)
    assert step_interval([before], [unknown]).low > 0.2


@cases((18.0, True), (12.0, False))
def test_the_interval_holds_what_the_traced_steps_say(untraced_ms: float, *, held: bool) -> None:
    """The reports are about steps without the profiler's cost, which is not known to a percent."""
    before = ComparedSteps(run(0).times_ms, untraced_ms, untraced_ms=untraced_ms)
    after = ComparedSteps(run(1, step_ms=26).times_ms, untraced_ms, untraced_ms=untraced_ms)
    assert bool(step_interval([before], [after]).high >= np.log(1.29)) is held


def test_a_mean_with_long_steps_is_no_regression_of_the_medians() -> None:
    """One window of two holds the long step at the end of an epoch."""
    long = run(1).times_ms.copy()
    long[20] = 600.0
    after = ComparedSteps(long, float(long.mean()), StepFigure.MEAN)
    assert step_interval([run(0)], [after]).low < GATE


def test_more_different_stretches_make_the_interval_wider() -> None:
    drifting = run(0).times_ms * np.linspace(1.0, 1.3, 60)
    even = step_interval([run(1)], [run(0)])
    drift = step_interval([run(1)], [ComparedSteps(drifting, float(np.median(drifting)))])
    assert drift.high - drift.low > 2 * (even.high - even.low)


def test_blocks_grow_with_the_cube_root_of_the_steps() -> None:
    assert [block_length(count) for count in (8, 27, 60, 1000)] == [2, 3, 4, 10]


@cases((1, 0.75, 1.25), (4, 1.5, 3.0))
def test_the_error_of_a_mean_is_larger_for_dependent_steps(times: int, least: float, most: float) -> None:
    """Of values that come four times in a row, a quarter of the steps are new: twice the error."""
    values = np.repeat(np.random.default_rng(0).normal(size=1000 // times), times)
    error = bootstrap_error(values, lambda drawn: drawn.mean(axis=1))
    assert least < error / (values.std() / math.sqrt(1000)) < most


def test_ratios_are_changes_of_the_time_before() -> None:
    ratios = Interval(math.log(1.1), 0.0, math.log(2.0)).ratios()
    assert (ratios.middle, ratios.low, ratios.high) == pytest.approx((0.1, 0.0, 1.0))


def test_intervals_that_have_nothing_in_common_make_nothing_more_certain() -> None:
    low, high = Interval(1.5, 1.0, 2.0), Interval(3.5, 3.0, 4.0)
    both = low.within(high)
    assert (both.low, both.high) == (1.0, 4.0)
    assert low.within(Interval(1.6, 1.2, 3.0)) == Interval(1.5, 1.2, 2.0)
