"""Whether two runs train the same, from what the agent wrote of each."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trial.test_times import loop
from tfdoctor.diagnosis.trials import TrainingState
from tfdoctor.trial.program import Variant
from tfdoctor.trial.times import Timing
from tfdoctor.trial.training import compare
from tfdoctor.trial.trial_run import TrialRun


def run(folder: Path, digest: str, losses: list[float], sizes: list[int]) -> TrialRun:
    """Return a run whose agent wrote these losses, one for each call."""
    state: dict[str, Any] = {"step": sum(sizes), "digest": digest, "losses": losses}
    text = {"loops": [loop([1.0] * (len(sizes) - 1), sizes=sizes, state=state)], "finite": True, "enough": True}
    path = folder / f"{digest}.json"
    path.write_text(json.dumps(text))
    return TrialRun(state=Timing.read(path).loops[0].state, finite=True)


def test_losses_are_compared_after_the_same_steps(tmp_path: Path) -> None:
    """A call of four steps returns the loss after the fourth, not that of a first step."""
    as_is = run(tmp_path, "one", [2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3], [1] * 8)
    fewer_calls = run(tmp_path, "two", [1.7, 1.43], [4, 4])
    found = compare(Variant("steps-per-execution"), [fewer_calls], [as_is, as_is])
    assert found.state is TrainingState.LOSSES
    assert found.losses == ((4, 1.7, 1.7), (8, 1.3, 1.43))
    assert found.apart == pytest.approx(0.1, rel=0.1)


def test_losses_after_other_steps_are_not_compared(tmp_path: Path) -> None:
    as_is = run(tmp_path, "one", [2.0, 1.9, 1.8], [3, 3, 3])
    other = run(tmp_path, "two", [2.0, 1.9], [4, 4])
    found = compare(Variant("steps-per-execution"), [other], [as_is, as_is])
    assert found.state is TrainingState.UNKNOWN
    assert "after the same steps" in found.why


def test_other_weights_without_losses_are_said_to_differ(tmp_path: Path) -> None:
    """Runs as it is repeat bit by bit, so the change made the difference."""
    as_is = run(tmp_path, "one", [], [1] * 8)
    other = run(tmp_path, "two", [], [1] * 8)
    found = compare(Variant("mine.diff"), [other], [as_is, as_is])
    assert found.state is TrainingState.UNKNOWN
    assert found.why == "the weights differ after 8 steps, and there are no losses to compare"
    unlike = run(tmp_path, "three", [], [1] * 8)
    assert "weights differ" not in compare(Variant("mine.diff"), [other], [as_is, unlike]).why


@pytest.mark.parametrize(("loss", "said"), [(1.501, False), (2.5, True)])
def test_an_exact_change_that_moves_losses_beyond_chance_is_said(
    tmp_path: Path, loss: float, *, said: bool
) -> None:
    as_is = [run(tmp_path, name, [2.0, last], [1, 1]) for name, last in (("a", 1.5), ("b", 1.502))]
    own = run(tmp_path, "c", [2.0, loss], [1, 1])
    found = compare(Variant("cache", exact=True), [own], as_is)
    assert (found.state is TrainingState.UNKNOWN) is said
    assert ("this change should not affect them" in found.why) is said
    patch = compare(Variant("mine.diff"), [own], as_is)
    assert patch.state is TrainingState.LOSSES


@pytest.mark.parametrize(
    ("own", "reorders", "state"),
    [
        ([("b", 1.52), ("c", 1.48)], True, TrainingState.REORDERED),
        ([("b", 1.52), ("c", 1.48)], False, TrainingState.DIFFERENT),
        ([("b", 1.52), ("b", 1.52)], True, TrainingState.DIFFERENT),  # nothing comes in any order
        ([("b", 1.9), ("c", 1.901)], True, TrainingState.DIFFERENT),  # nor is that what moves it
        ([("a", 1.5), ("c", 1.501)], True, TrainingState.REORDERED),
        ([("a", 1.5), ("a", 1.5)], True, TrainingState.EQUAL),
    ],
)
def test_other_weights_are_laid_to_random_numbers_only_where_its_own_runs_differ_like_that(
    tmp_path: Path, own: list[tuple[str, float]], state: TrainingState, *, reorders: bool
) -> None:
    as_is = [run(tmp_path, "a", [2.0, 1.5], [1, 1]) for _ in range(2)]
    runs = [run(tmp_path, digest, [2.0, loss], [1, 1]) for digest, loss in own]
    found = compare(Variant("parallel-map", exact=True, reorders=reorders), runs, as_is)
    assert found.state is state
    assert (found.own is not None) is (state is TrainingState.REORDERED)
    assert (found.apart is not None) is (state is not TrainingState.EQUAL)


def test_a_program_that_draws_others_each_time_blames_no_change_for_its_order(tmp_path: Path) -> None:
    as_is = [run(tmp_path, name, [2.0, last], [1, 1]) for name, last in (("a", 1.5), ("b", 1.502))]
    own = run(tmp_path, "c", [2.0, 2.5], [1, 1])
    found = compare(Variant("parallel-map", exact=True, reorders=True), [own], as_is)
    assert found.state is TrainingState.LOSSES
    assert found.usual == pytest.approx(0.0013, rel=0.1)


def test_one_run_as_it_is_shows_nothing_of_how_much_two_differ(tmp_path: Path) -> None:
    as_is, own = (run(tmp_path, name, [2.0, 1.5], [1, 1]) for name in "ab")
    assert compare(Variant("mine.diff"), [own], [as_is]).usual is None
