"""The newest commit against the runs before it: how often chance fails it, and what a regression shows."""

from tests.facts.kit import Told
from tests.kit import *
from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import Accepted, ChangePoint
from tfdoctor.history.series import FEWEST, checked, reference

NOISE = 0.02

ACCEPTED = Accepted("train.py", "step-ms", "abc", "Ann", "2026-03-01", "larger crops")


def series(seed: int, count: int, times: int, *, heavy: bool = False) -> Iterator[tuple[list[float], float]]:
    """Yield stable runs, and one more, so many times."""
    draw = np.random.default_rng(seed)
    for _ in range(times):
        noise = draw.standard_t(3, count + 1) if heavy else draw.standard_normal(count + 1)
        *before, newest = [float(value) for value in 50 * np.exp(NOISE * noise)]
        yield before, newest


@cases((False, 0.025), (True, 0.06))
@pytest.mark.parametrize("count", [5, 8, 20, 50])
def test_few_stable_runs_are_above_the_interval(*, heavy: bool, most: float, count: int) -> None:
    found = [checked([newest], before, 0.0).low for before, newest in series(count, count, 4_000, heavy=heavy)]
    assert sum(low is not None and low > 0 for low in found) / len(found) <= most + 0.006


@cases((5, 1.0, 0.0, 0.001), (20, 1.0, 0.0, 0.001), (5, 1.2, 0.5, 1.0), (8, 1.2, 0.85, 1.0), (20, 1.2, 0.99, 1.0))
def test_a_gate_fails_for_a_fifth_not_by_noise_of_two(count: int, factor: float, least: float, most: float) -> None:
    runs = list(series(count, count, 4_000 if factor == 1 else 500))
    failed = [checked([factor * newest], before, 0.05).state is BudgetState.EXCEEDED for before, newest in runs]
    assert least <= sum(failed) / len(failed) <= most


TOLD = Told()
EVEN, BEFORE = [50.0] * 10, [50.0, 50.5, 49.5, 50.2, 49.8, 50.1]

TOLD[checked] = {
    "the change is that from the median": ([60.0], [49.0, 50.0, 50.0, 51.0, 500.0], 0.05),
    # Runs without noise differ by what is assumed of runs:
    "nearly as long as all before": ([50.2], EVEN, 0.01),
    "a little longer than all before": ([52.0], EVEN, 0.01),
    # Several runs of the newest commit are judged by their median:
    "one of three runs is long": ([50.0, 90.0, 50.3], BEFORE, 0.05),
    "two of three runs are long": ([70.0, 90.0, 50.3], BEFORE, 0.05),
    "after too few runs it does not fail": ([90.0], EVEN[: FEWEST - 1], 0.05),
    "the newest run does not have it": ([], EVEN, 0.05),
    "longer, without a limit": ([90.0], EVEN, None),
    "unknown, without a limit": ([], EVEN, None),
}
test_gates = TOLD.test("gates")

# What it is compared with


def point(at: int, before: float, after: float, *, accepted: bool = False) -> ChangePoint:
    return ChangePoint(at, before, after, ACCEPTED if accepted else None)


WINDOW = (10, 30)


@cases(
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
)
def test_the_runs_to_compare_with(changes: list[ChangePoint], starts: list[int], span: tuple[int, int]) -> None:
    start, end, why = reference(changes, starts, WINDOW)
    assert (start, end) == span
    assert bool(why) == (span != WINDOW)
