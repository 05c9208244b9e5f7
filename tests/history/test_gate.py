"""The newest commit against the runs before it: how often chance fails it, and what a regression shows."""

import numpy as np
import pytest

from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import Accepted, ChangePoint
from tfdoctor.history.series import FEWEST, checked, reference

NOISE = 0.02

ACCEPTED = Accepted("train.py", "step-ms", "abc", "Ann", "2026-03-01", "larger crops")


def runs(draw: np.random.Generator, count: int, *, heavy: bool = False) -> list[float]:
    noise = draw.standard_t(3, count) if heavy else draw.standard_normal(count)
    return [float(value) for value in 50 * np.exp(NOISE * noise)]


@pytest.mark.parametrize(("heavy", "most"), [(False, 0.025), (True, 0.06)])
@pytest.mark.parametrize("count", [5, 8, 20, 50])
def test_few_stable_runs_are_above_the_interval(count: int, most: float, *, heavy: bool) -> None:
    draw, series = np.random.default_rng(count), 4_000
    above = 0
    for _ in range(series):
        *before, newest = runs(draw, count + 1, heavy=heavy)
        found = checked([newest], before, 0.0)
        above += found.low is not None and found.low > 0
    assert above / series <= most + 0.006


@pytest.mark.parametrize("count", [5, 20])
def test_a_gate_of_five_percent_hardly_ever_fails_by_noise_of_two(count: int) -> None:
    draw = np.random.default_rng(count)
    failed = 0
    for _ in range(4_000):
        *before, newest = runs(draw, count + 1)
        failed += checked([newest], before, 0.05).state is BudgetState.EXCEEDED
    assert failed <= 4


@pytest.mark.parametrize(("count", "least"), [(5, 0.5), (8, 0.85), (20, 0.99)])
def test_a_regression_of_a_fifth_fails(count: int, least: float) -> None:
    draw = np.random.default_rng(count)
    failed = 0
    for _ in range(500):
        *before, newest = runs(draw, count + 1)
        failed += checked([1.2 * newest], before, 0.05).state is BudgetState.EXCEEDED
    assert failed / 500 >= least


def test_the_change_is_that_from_the_median() -> None:
    found = checked([60.0], [49.0, 50.0, 50.0, 51.0, 500.0], 0.05)
    assert found.usual == pytest.approx(50.0)
    assert found.change == pytest.approx(0.2)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.2 < found.high


BEFORE = [50.0, 50.5, 49.5, 50.2, 49.8, 50.1]
FEW = "there are four runs to compare with, and at least 5 are needed"


@pytest.mark.parametrize(
    ("newest", "before", "limit", "state", "why"),
    [
        # Runs without noise differ by what is assumed of runs:
        ([50.2], [50.0] * 10, 0.01, BudgetState.UNCLEAR, ""),
        ([52.0], [50.0] * 10, 0.01, BudgetState.EXCEEDED, ""),
        # Several runs of the newest commit are judged by their median:
        ([50.0, 90.0, 50.3], BEFORE, 0.05, BudgetState.MET, ""),
        ([70.0, 90.0, 50.3], BEFORE, 0.05, BudgetState.EXCEEDED, ""),
        ([90.0], [50.0] * (FEWEST - 1), 0.05, BudgetState.UNCLEAR, FEW),  # it does not fail
        ([], [50.0] * 10, 0.05, BudgetState.UNKNOWN, "the newest run does not have it"),
        *((newest, [50.0] * 10, None, None, "") for newest in ([90.0], [])),  # without a limit
    ],
)
def test_what_is_decided(
    newest: list[float], before: list[float], limit: float | None, state: BudgetState | None, why: str
) -> None:
    found = checked(newest, before, limit)
    assert found.state is state
    assert found.why == why or limit is None


# What it is compared with


def point(at: int, before: float, after: float, *, accepted: bool = False) -> ChangePoint:
    return ChangePoint(at, before, after, ACCEPTED if accepted else None)


WINDOW = (10, 30)


@pytest.mark.parametrize(
    ("changes", "starts", "span"),
    [
        ([], [], (10, 30)),
        ([point(5, 50, 60)], [], (10, 30)),  # before the window
        ([point(20, 50, 40)], [], (20, 30)),  # an improvement begins a new level
        ([point(20, 50, 60)], [], (10, 20)),  # a regression does not
        ([point(20, 50, 60, accepted=True)], [], (20, 30)),
        ([point(15, 50, 60), point(20, 60, 50)], [], (20, 30)),  # mended
        ([point(15, 50, 60), point(20, 60, 55)], [], (10, 15)),  # mended in part
        ([point(15, 50, 60), point(20, 60, 50.5)], [], (20, 30)),  # mended but for the noise
        ([point(15, 50, 60), point(20, 60, 70)], [], (10, 15)),
        ([point(31, 50, 60)], [], (10, 30)),  # of the newest commit itself
        ([], [25], (25, 30)),  # accepted before it shows
        ([], [5], (10, 30)),
        ([], [30], (30, 30)),  # the newest commit is accepted: there is nothing to compare it with yet
    ],
)
def test_the_runs_to_compare_with(changes: list[ChangePoint], starts: list[int], span: tuple[int, int]) -> None:
    start, end, why = reference(changes, starts, WINDOW)
    assert (start, end) == span
    assert bool(why) == (span != WINDOW)
