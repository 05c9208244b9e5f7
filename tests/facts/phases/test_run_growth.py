"""What grows over a run is told from noise, warm-up, plateaus and single jumps."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import recording
from tests.run_logs import Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_course import Floats
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.recording.run_log import Census
from tfdoctor.terms.kinds import RunCall

LOOP = "train.py:12"
TIMES = np.arange(300.0)
SEEDS = 150

Random = np.random.Generator


def certain(values: Floats, times: Floats = TIMES) -> bool:
    line = Trend.through(times, values)
    return line is not None and line.low > 0 and line.steady


def alarms(make: Callable[[Random], Floats], seeds: int = SEEDS) -> int:
    return sum(certain(make(np.random.default_rng(seed))) for seed in range(seeds))


def walk(random: Random) -> Floats:
    return np.cumsum(random.normal(size=300))


def jump(random: Random) -> Floats:
    return 5.0 * (random.uniform(0, 300) < TIMES) + random.normal(size=300) / 10


NO_GROWTH: dict[str, Callable[[Random], Floats]] = {
    "noise": lambda random: random.normal(size=300),
    "long steps": lambda random: random.standard_t(2, size=300),
    "plateau": lambda random: -10 * np.exp(-TIMES / 30) + random.normal(size=300) / 3,
    "late plateau": lambda random: -10 * np.exp(-TIMES / 80) + random.normal(size=300) / 10,
    "jump": jump,
}
GROWTH: dict[str, Callable[[Random], Floats]] = {
    "line": lambda random: TIMES / 50 + random.normal(size=300),
    "stairs": lambda random: np.floor(TIMES / 20) + random.normal(size=300) / 20,
    "faster and faster": lambda random: (TIMES / 100) ** 2 + random.normal(size=300) / 10,
    "few stairs": lambda random: np.floor(TIMES / 60) + random.normal(size=300) / 20,
    "slower and slower": lambda random: np.sqrt(TIMES) + random.normal(size=300) / 10,
}


@pytest.mark.parametrize("kind", NO_GROWTH)
def test_what_does_not_grow_is_rarely_called_growth(kind: str) -> None:
    assert alarms(NO_GROWTH[kind]) < 0.01 * SEEDS


def test_a_drift_by_chance_is_seldom_called_growth() -> None:
    assert alarms(walk) < 0.08 * SEEDS


@pytest.mark.parametrize("kind", GROWTH)
def test_growth_is_found(kind: str) -> None:
    assert alarms(GROWTH[kind], 60) >= 57


@given(st.floats(0.01, 1e9), st.floats(-1e9, 1e9))
def test_a_straight_line_is_its_own_trend(slope: float, start: float) -> None:
    line = Trend.through(TIMES, start + slope * TIMES)

    assert line is not None
    assert line.slope == pytest.approx(slope, rel=1e-3, abs=1e-6 * abs(start))


def test_few_points_are_no_trend() -> None:
    assert Trend.through(TIMES[:7], TIMES[:7]) is None
    assert Trend.through(np.zeros(50), TIMES[:50]) is None


# Of a run


def growth(run: Run) -> RunGrowth:
    return RunGrowth.measure(run.recording())


def found(run: Run, what: Grows) -> Trend:
    trend = growth(run).of(what)
    assert trend is not None
    return trend


def test_steps_that_take_longer_and_longer_grow() -> None:
    run = Run()
    for number in range(300):
        run.steps(1, 41 + number * 55 / 300, LOOP)

    trend = found(run, Grows.STEP)

    assert trend.grows
    assert trend.first == pytest.approx(47 + 55 / 20, abs=3)  # after a tenth
    assert trend.last == pytest.approx(96 - 55 / 20, abs=3)
    assert trend.over_steps == pytest.approx(270, abs=15)


def test_traced_steps_and_long_ones_are_no_trend() -> None:
    run = Run()
    run.steps(300, 5.0, LOOP)
    for _ in range(100):
        run.steps(9, 5.0, LOOP)
        run.steps(1, 80.0, LOOP)
    run.steps(400, 15.0, LOOP, traced=True)

    assert not found(run, Grows.STEP).grows


def counted(resident: Callable[[float], float], *, prepares: bool = False) -> Run:
    run = Run()
    if prepares:
        for second in range(100):
            run.count(rss=second * 10**8)
            run.python(0.5, "train.py:3")
    for number in range(100):
        run.count(rss=round(resident(number)))
        run.steps(100, 5.0, LOOP)
    return run


def test_memory_that_grows_with_each_step_leaks() -> None:
    trend = found(counted(lambda number: 10**9 + number * 10**7), Grows.RESIDENT)

    assert trend.grows
    assert trend.slope == pytest.approx(2 * 10**7, rel=0.02)  # 100 steps of 5 ms
    assert trend.last == pytest.approx(10**9 + 95 * 10**7, rel=0.05)


def test_a_graph_that_slows_its_own_steps_grows_with_each_step() -> None:
    """Trap: each step takes longer than the one before, so the graph grows slower and slower over time."""
    run = Run()
    for number in range(40):
        run.count(graph=500 + 100 * number)
        run.steps(1, 100.0 * 1.1**number, LOOP)

    trend = found(run, Grows.GRAPH)

    assert trend.steady
    assert trend.slope == pytest.approx(100, rel=0.02)


@pytest.mark.parametrize(("most", "steady"), [(5_000, True), (1_000, False)])
def test_few_counts_of_a_graph_are_exact(most: int, *, steady: bool) -> None:
    """Nine counts are too few for a trend of anything that has noise."""
    run = Run()
    for number in range(9):
        run.count(graph=min(300 + 2 * 75 * number, most))
        run.steps(75, 13.0, LOOP)

    assert found(run, Grows.GRAPH).steady is steady


def test_a_graph_grows_also_while_no_step_runs() -> None:
    """Trap: while a loop over rows makes operations, no step is counted by which the graph could grow."""
    run = Run()
    with run.call(RunCall.FUNCTION, LOOP):
        run.python(0.6, LOOP)
    for number in range(40):
        run.count(graph=500 + 100 * number)
        run.python(0.6, LOOP)
    for _ in range(3):
        run.count(graph=4500)
        run.steps(40, 15.0, LOOP)

    assert found(run, Grows.GRAPH).steady


def test_a_graph_that_is_made_once_does_not_grow() -> None:
    run = Run()
    for number in range(40):
        run.count(graph=min(500 + 100 * number, 1500))
        run.steps(1, 600.0, LOOP)

    assert not found(run, Grows.GRAPH).steady


def test_data_that_are_loaded_before_training_are_no_leak() -> None:
    run = counted(lambda number: 10**10 + number % 3, prepares=True)

    assert not found(run, Grows.RESIDENT).grows


def test_memory_leaks_although_the_loop_waits_for_the_end_of_its_data() -> None:
    run = counted(lambda number: 10**9 + number * 10**7)
    for _ in range(100):
        run.count(rss=2 * 10**9)
        run.python(0.5, LOOP, looped=True)

    assert found(run, Grows.RESIDENT).grows


def test_memory_of_a_program_that_trains_nothing_is_seen_as_well() -> None:
    run = Run()
    for second in range(60):
        run.count(rss=second * 10**8)
        run.python(0.5, "load.py:3")

    assert found(run, Grows.RESIDENT).grows


def with_objects(counts: list[int]) -> Run:
    run = counted(lambda number: number * 10**6)
    for number, count in enumerate(counts):
        types = {"numpy.ndarray": count, "builtins.dict": 500}
        run.censuses.append(Census(run.now * (number + 1) / (len(counts) + 1), types))
    return run


def test_types_of_objects_that_grow_in_number_are_named() -> None:
    (trend,) = growth(with_objects([100, 200, 300, 400, 500, 600])).objects

    assert (trend.name, trend.first, trend.last) == ("numpy.ndarray", 100, 600)


@pytest.mark.parametrize("counts", [[100, 200, 300], [100, 300, 400, 401, 402, 402], [5, 9, 3, 8, 4]])
def test_types_that_are_counted_seldom_or_stay_are_not(counts: list[int]) -> None:
    assert not growth(with_objects(counts)).objects


def test_a_short_run_shows_no_growth() -> None:
    run = Run()
    run.during(RunCall.PREDICT, 1.0, "p.py:3", "Model.predict")
    with pytest.raises(Unavailable, match="too short"):
        growth(run)
    with pytest.raises(Unavailable, match="not recorded"):
        RunGrowth.measure(recording())


def test_steps_that_were_only_counted_have_a_trend() -> None:
    run = Run()
    for number in range(40):
        run.steps(20, 20.0 + number, LOOP)
    log = run.log()
    bins = [replace(b, steps=tuple(replace(s, each=(), bins={}) for s in b.steps)) for b in log.buckets]
    one = replace(run.recording(), run=replace(log, buckets=tuple(bins)))

    trend = RunGrowth.measure(one).of(Grows.STEP)

    assert trend is not None
    assert trend.grows
