"""From the agent's times of calls to the step of a run."""

import json
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfdoctor.trial.times import Loop, Timing, TrialTimes, aligned, times_of
from tfdoctor.trial.turns import TurningRun


def loop(spans_ms: list[float], **changes: Any) -> dict[str, Any]:
    """Return a loop as the agent writes it."""
    starts = np.concatenate([[0.0], np.cumsum(spans_ms)]) * 1e6
    entry = {
        "source": "keras-fit",
        "starts_ns": starts.astype(int).tolist(),
        "sizes": [1] * len(starts),
        "updates": [],
        "epoch_ends": [],
        "epoch_steps": None,
        "state": None,
        "warmup": 21,
        "fewest": 15,
    }
    return entry | changes


def figures(**changes: Any) -> TrialTimes:
    spans = changes.pop("spans", [500.0] * 5 + [100.0] * 95)
    times, _ = times_of(Loop.read(loop(spans, **changes)))
    assert times
    return times


def test_the_warm_up_is_left_out() -> None:
    assert figures().step_ms == pytest.approx(100.0)
    assert figures().whole_ms == pytest.approx(100.0)


def test_a_pause_between_epochs_is_in_the_whole_and_not_in_the_step() -> None:
    spans = ([10.0] * 50 + [400.0]) * 6
    times = figures(spans=spans)
    assert times.step_ms == pytest.approx(10.0, rel=0.05)
    assert times.whole_ms > 15.0


def test_the_first_epoch_that_fills_a_cache_is_left_out() -> None:
    spans = [80.0] * 120 + [20.0] * 60
    assert figures(spans=spans, epoch_steps=120).step_ms == pytest.approx(20.0)


def test_a_call_of_several_steps_counts_each() -> None:
    assert figures(sizes=[10] * 101).step_ms == pytest.approx(10.0)


def test_updates_make_different_loops_comparable() -> None:
    """Two gradients a step, as in a GAN's eager loop, against one call of a function that makes both updates."""
    eager = figures(spans=[50.0] * 200, updates=[[20, 20], [196, 196]])
    graph = figures(spans=[100.0] * 100, updates=[[20, 40], [96, 192]])
    assert (eager.per, graph.per) == (Fraction(1), Fraction(2))
    assert eager.step_ms == pytest.approx(graph.step_ms)


def test_updates_that_were_cut_off_at_the_end_are_still_counted() -> None:
    assert figures(updates=[[20, 40], [99, 197]]).per == 2


@pytest.mark.parametrize("extra", [0, 5, 10])
def test_updates_for_steps_without_a_batch_do_not_count(extra: int) -> None:
    """Ten epochs of eight steps: at the end of each, Keras asks for a batch more."""
    counted = [[8, 8], [88, 88 + extra]]
    made = loop([100.0] * 100, updates=counted, epoch_ends=[*range(8, 96, 8)])
    assert Loop.read(made).updates_per_step() == 1


@pytest.mark.parametrize(
    ("updates", "per"),
    [
        ([[4, 4], [15, 14]], Fraction(1)),  # the run cut one off
        ([[20, 5], [37, 9]], None),  # one in four or in five: too few steps to say
        ([[20, 5], [97, 24]], Fraction(1, 4)),
    ],
)
def test_few_steps_do_not_make_up_a_ratio(updates: list[list[int]], per: Fraction | None) -> None:
    assert Loop.read(loop([100.0] * 100, updates=updates)).updates_per_step() == per


def test_too_few_steps_have_no_figure() -> None:
    times, why = times_of(Loop.read(loop([100.0] * 31)))
    assert times is None
    assert "10 steps" in why


def test_of_two_loops_the_outer_one_is_timed(tmp_path: Path) -> None:
    inner, outer = loop([20.0] * 200), loop([100.0] * 40)
    path = tmp_path / "timing.json"
    written = {"loops": [inner, outer], "finite": True, "enough": False}
    path.write_text(json.dumps(written))
    timing = Timing.read(path)
    assert timing.chosen() is timing.loops[1]


def turning(spans: list[float], began_ms: float, warmup: int = 2) -> Loop:
    """Return the loop of a run that took turns with others, on the clock of all."""
    made = Loop.read(loop(spans, warmup=warmup, fewest=3))
    return made.on(lambda at_ms: at_ms + began_ms)


def test_runs_by_turns_count_while_all_are_steady() -> None:
    """The first is steady at 20 ms, the second at 65; the first ends at 200 ms, while other programs compute."""
    first = turning([10.0] * 10 + [50.0] * 2, began_ms=0.0)
    second = turning([10.0] * 20, began_ms=45.0)
    first, second = aligned([first, second])
    assert first.common_ms == second.common_ms == (65.0, 200.0)
    assert first.steady()[0].tolist() == [10.0] * 3 + [50.0] * 2
    assert second.steady()[0].tolist() == [10.0] * 13


def test_runs_that_have_few_steps_while_others_are_steady_count_all() -> None:
    """As one that runs alone for most of its time, because the others had few steps."""
    loops = [turning([10.0] * 10, 0.0), turning([10.0] * 10, 75.0)]
    assert [len(one.steady()[0]) for one in aligned(loops)] == [8, 8]


def test_a_run_without_enough_steps_shortens_no_other() -> None:
    loops = [turning([10.0] * 10, 0.0), turning([10.0] * 10, 0.0), turning([10.0] * 4, 0.0)]
    assert [len(one.steady()[0]) for one in aligned(loops)] == [8, 8, 2]


def test_a_run_alone_counts_all_its_steady_steps() -> None:
    one = turning([10.0] * 10, 3.0)
    assert aligned([one])[0].steady()[0].tolist() == one.steady()[0].tolist()


def test_the_steps_of_a_stopped_run_have_the_times_in_which_it_computed() -> None:
    """Of each 30 ms, it is stopped for 20: every other step goes on after that."""
    turns = [(0.03 * n, 0.03 * n + 0.01) for n in range(21)]
    run = TurningRun(subprocess.Popen, 60.0, turns=turns)  # type: ignore[arg-type] # it never starts
    one = turning([5.0, 25.0] * 20, 0.0).on(run.own_ms)
    assert np.isclose(one.steady()[0], 5.0).all()
