"""From the agent's times of calls to the step of a run."""

from tests.trial.kit import *

FIRST_SLOW = [500.0] * 5 + [100.0] * 95
PAUSES = ([10.0] * 50 + [400.0]) * 6


@cases(
    (FIRST_SLOW, {}, 100.0, 100.0),  # the warm-up is left out
    (PAUSES, {}, 10.0, 17.8),  # a pause between epochs is in the whole and not in the step
    ([80.0] * 120 + [20.0] * 60, {"epoch_steps": 120}, 20.0, 20.0),  # nor is the epoch that fills a cache
    ([100.0] * 100, {"sizes": [10] * 101}, 10.0, 10.0),  # a call of several steps counts each
    # Updates make loops comparable: two gradients a step, as in a GAN's eager loop, and one function with both.
    ([50.0] * 200, {"updates": [[20, 20], [196, 196]]}, 50.0, 50.0),
    ([100.0] * 100, {"updates": [[20, 40], [96, 192]]}, 50.0, 50.0),
)
def test_the_step_of_a_run(spans: list[float], changes: dict[str, Any], step_ms: float, whole_ms: float) -> None:
    times = sure(times_of(Loop.read(loop(spans, **changes)))[0])
    assert (times.step_ms, times.whole_ms) == pytest.approx((step_ms, whole_ms), rel=0.05)


@cases(
    ([[20, 20], [196, 196]], [], Fraction(1)),
    ([[20, 40], [96, 192]], [], Fraction(2)),
    ([[20, 40], [99, 197]], [], Fraction(2)),  # those that were cut off at the end still count
    # Ten epochs of eight steps: at the end of each, Keras asks for a batch more.
    *(([[8, 8], [88, 88 + extra]], [*range(8, 96, 8)], Fraction(1)) for extra in (0, 5, 10)),
    ([[4, 4], [15, 14]], [], Fraction(1)),  # the run cut one off
    ([[20, 5], [37, 9]], [], None),  # one in four or in five: too few steps to say
    ([[20, 5], [97, 24]], [], Fraction(1, 4)),
)
def test_how_many_updates_a_step_makes(updates: list[list[int]], ends: list[int], per: Fraction | None) -> None:
    made = Loop.read(loop([100.0] * 100, updates=updates, epoch_ends=ends))
    assert made.updates_per_step() == per


def test_too_few_steps_have_no_figure() -> None:
    times, why = times_of(Loop.read(loop([100.0] * 31)))
    assert (times, "10 steps" in why) == (None, True)


def test_of_two_loops_the_outer_one_is_timed(tmp_path: Path) -> None:
    path, loops = tmp_path / "timing.json", [loop([20.0] * 200), loop([100.0] * 40)]
    path.write_text(json.dumps({"loops": loops, "finite": True, "enough": False}))
    timing = Timing.read(path)
    assert timing.chosen() is timing.loops[1]


def turning(spans: list[float], began_ms: float, warmup: int = 2) -> Loop:
    """Return the loop of a run that took turns with others, on the clock of all."""
    return Loop.read(loop(spans, warmup=warmup, fewest=3)).on(lambda at_ms: at_ms + began_ms)


def test_runs_by_turns_count_while_all_are_steady() -> None:
    """The first is steady at 20 ms, the second at 65; the first ends at 200 ms, while other programs compute."""
    first, second = aligned([turning([10.0] * 10 + [50.0] * 2, 0.0), turning([10.0] * 20, 45.0)])
    assert first.common_ms == second.common_ms == (65.0, 200.0)
    assert [one.steady()[0].tolist() for one in (first, second)] == [[10.0] * 3 + [50.0] * 2, [10.0] * 13]


@cases(
    # Few steps while others are steady, as of one that runs alone for most of its time: all count.
    ([(10, 0.0), (10, 75.0)], [8, 8]),
    ([(10, 0.0), (10, 0.0), (4, 0.0)], [8, 8, 2]),  # a run without enough steps shortens no other
    ([(10, 3.0)], [8]),
)
def test_where_runs_are_not_steady_at_once_all_steps_count(
    runs: list[tuple[int, float]], counted: list[int]
) -> None:
    loops = [turning([10.0] * steps, began_ms) for steps, began_ms in runs]
    assert [len(one.steady()[0]) for one in aligned(loops)] == counted


def test_the_steps_of_a_stopped_run_have_the_times_in_which_it_computed() -> None:
    """Of each 30 ms, it is stopped for 20: every other step goes on after that."""
    turns = [(0.03 * n, 0.03 * n + 0.01) for n in range(21)]
    run = TurningRun(subprocess.Popen, 60.0, turns=turns)  # type: ignore[arg-type] # it never starts
    one = turning([5.0, 25.0] * 20, 0.0).on(run.own_ms)
    assert np.isclose(one.steady()[0], 5.0).all()
