"""Changes of the level: how often a stable series shows one, and which are found at the right run."""

from tests.kit import *
from tfdoctor.compare.step_times import Floats
from tfdoctor.history import change_points
from tfdoctor.history.change_points import (
    BETWEEN,
    DIVIDED,
    FALSE_ALARMS,
    FEWEST,
    LEVEL,
    at_one_place,
    at_two_places,
    limit,
    ranks,
)

SERIES = 1_000
"""Of each kind, with a fixed seed: a rate of 2 % is then measured within 0.9 % (two standard errors)."""

NOISE = 0.02


def normal(draw: np.random.Generator, count: int) -> Floats:
    return np.asarray(draw.standard_normal(count))


def heavy(draw: np.random.Generator, count: int) -> Floats:
    return np.asarray(draw.standard_t(3, count))


def with_slow_runs(draw: np.random.Generator, count: int) -> Floats:
    """One run in ten takes twice as long."""
    return np.asarray(draw.standard_normal(count) + 35 * (draw.random(count) < 0.1))


@each(normal, heavy, with_slow_runs)
@pytest.mark.parametrize("count", [10, 14, 20, 50])
def test_few_stable_series_show_a_change(noise: Callable[[np.random.Generator, int], Floats], count: int) -> None:
    draw = np.random.default_rng(count)
    series = (np.exp(NOISE * noise(draw, count)) for _ in range(SERIES))
    marked = sum(bool(change_points.change_points(one)) for one in series)
    assert marked / SERIES <= 2 * FALSE_ALARMS + 0.009


@cases((10, 5), (12, 6), (20, 10), (20, 15), (30, 6), (60, 50))
@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
def test_a_change_of_a_fifth_is_found_at_its_run(count: int, at: int, factor: float) -> None:
    found = [_found(seed, count, [(at, factor)]) for seed in range(200)]
    assert found.count((at,)) >= 190


@cases((24, 6, 16), (30, 10, 18), (20, 7, 14))
def test_a_level_that_returns_is_found_at_both_ends(count: int, start: int, end: int) -> None:
    found = [_found(seed, count, [(start, 1.2), (end, 1 / 1.2)]) for seed in range(100)]
    assert found.count((start, end)) >= 90


def _found(seed: int, count: int, changes: Sequence[tuple[int, float]]) -> tuple[int, ...]:
    draw = np.random.default_rng(seed)
    values = 50 * np.exp(NOISE * draw.standard_normal(count))
    for at, factor in changes:
        values[at:] *= factor
    return change_points.change_points(values)


def test_too_few_runs_show_nothing_however_much_they_differ() -> None:
    nine = np.array([1.0] * 4 + [100.0] * 5)
    assert len(nine) < FEWEST
    assert change_points.change_points(nine) == ()


def test_one_run_of_ten_times_the_time_is_no_change() -> None:
    values = 50 * np.exp(NOISE * np.random.default_rng(1).standard_normal(20))
    for at in range(20):
        slow = values.copy()
        slow[at] *= 10
        assert change_points.change_points(slow) == ()


def test_a_change_that_no_user_acts_on_is_not_marked() -> None:
    assert change_points.change_points(np.array([100.0] * 10 + [100.5] * 10)) == ()
    assert change_points.change_points(np.array([100.0] * 10 + [101.5] * 10)) == (10,)


@given(st.lists(st.floats(0.1, 1e6), max_size=60), st.floats(0.01, 100))
def test_every_series_is_divided_into_levels_and_its_unit_does_not_matter(values: list[float], unit: float) -> None:
    series = np.array(values, dtype=np.float64)
    found = change_points.change_points(series)
    bounds = (0, *found, len(values))
    if found:
        assert all(end - start >= LEVEL for start, end in pairwise(bounds))
    # Only where no two values are so near that the unit's rounding changes their order.
    if len({f"{value:.9g}" for value in values}) == len(values):
        assert change_points.change_points(series * unit) == found


@each(10, 20, 40)
def test_the_limits_are_those_of_shuffled_series(count: int) -> None:
    draw, series = np.random.default_rng(1), 4_000
    shuffled = [draw.permutation(np.arange(1.0, count + 1)) for _ in range(series)]
    sums = [np.concatenate([[0.0], np.cumsum(one)]) for one in shuffled]
    beyond = sum(at_one_place(one) > limit(DIVIDED, count) for one in sums) / series
    assert 0.5 * FALSE_ALARMS <= beyond <= 1.5 * FALSE_ALARMS
    if count >= min(BETWEEN):
        beyond = sum(at_two_places(one)[0] > limit(BETWEEN, count) for one in sums) / series
        assert 0.5 * FALSE_ALARMS <= beyond <= 1.5 * FALSE_ALARMS


def test_equal_values_share_their_ranks() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
