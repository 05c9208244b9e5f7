"""Whether two runs train the same, from what the agent wrote of each."""

from collections.abc import Sequence

import pytest

from tests.trial.made import loop
from tfdoctor.diagnosis.trials import TrainingState
from tfdoctor.trial.program import Variant
from tfdoctor.trial.times import Loop
from tfdoctor.trial.training import compare
from tfdoctor.trial.trial_run import TrialRun

CHANGED, EXACT = Variant("mine.diff"), Variant("cache", exact=True)
PARALLEL = Variant("parallel-map", exact=True, reorders=True)


def run(digest: str, losses: Sequence[float], sizes: Sequence[int] = (1, 1)) -> TrialRun:
    """Return a run with these weights, whose calls of so many steps each returned a loss."""
    state = {"step": sum(sizes), "digest": digest, "losses": [*losses]}
    read = Loop.read(loop([1.0] * (len(sizes) - 1), sizes=[*sizes], state=state))
    return TrialRun(state=read.state, finite=True)


def test_losses_are_compared_after_the_same_steps() -> None:
    """A call of four steps returns the loss after the fourth, not that of a first step."""
    as_is = run("one", [2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3], [1] * 8)
    found = compare(CHANGED, [run("two", [1.7, 1.43], [4, 4])], [as_is, as_is])
    assert found.state is TrainingState.LOSSES
    assert found.losses == ((4, 1.7, 1.7), (8, 1.3, 1.43))
    assert found.apart == pytest.approx(0.1, rel=0.1)


UNSEEN = [run(name, [], [1] * 8) for name in ("one", "two", "three")]


@pytest.mark.parametrize(
    ("own", "as_is", "why"),
    [
        # Runs as it is repeat bit by bit, so the change made the difference.
        (UNSEEN[1], UNSEEN[:1] * 2, "the weights differ after 8 steps, and there are no losses to compare"),
        (UNSEEN[1], UNSEEN[::2], "no loss was returned after the same steps"),
        (run("two", [2.0, 1.9], [4, 4]), [run("one", [2.0, 1.9, 1.8], [3] * 3)] * 2, "no loss was returned after"),
    ],
)
def test_other_weights_without_losses_to_compare_are_unknown(
    own: TrialRun, as_is: list[TrialRun], why: str
) -> None:
    found = compare(CHANGED, [own], as_is)
    assert found.state is TrainingState.UNKNOWN
    assert found.why.startswith(why)


@pytest.mark.parametrize(("loss", "said"), [(1.501, False), (2.5, True)])
def test_an_exact_change_that_moves_losses_beyond_chance_is_said(loss: float, *, said: bool) -> None:
    as_is, own = [run("a", [2.0, 1.5]), run("b", [2.0, 1.502])], [run("c", [2.0, loss])]
    found = compare(EXACT, own, as_is)
    assert (found.state is TrainingState.UNKNOWN) is said
    assert ("this change should not affect them" in found.why) is said
    assert compare(CHANGED, own, as_is).state is TrainingState.LOSSES
    # A program that draws others each time blames no change for its order:
    drawn = compare(PARALLEL, own, as_is)
    assert drawn.state is TrainingState.LOSSES
    assert drawn.usual == pytest.approx(0.0013, rel=0.1)


@pytest.mark.parametrize(
    ("own", "variant", "state"),
    [
        ([("b", 1.52), ("c", 1.48)], PARALLEL, TrainingState.REORDERED),
        ([("b", 1.52), ("c", 1.48)], EXACT, TrainingState.DIFFERENT),
        ([("b", 1.52), ("b", 1.52)], PARALLEL, TrainingState.DIFFERENT),  # nothing comes in any order
        ([("b", 1.9), ("c", 1.901)], PARALLEL, TrainingState.DIFFERENT),  # nor is that what moves it
        ([("a", 1.5), ("c", 1.501)], PARALLEL, TrainingState.REORDERED),
        ([("a", 1.5), ("a", 1.5)], PARALLEL, TrainingState.EQUAL),
    ],
)
def test_other_weights_are_laid_to_random_numbers_only_where_its_own_runs_differ_like_that(
    own: list[tuple[str, float]], variant: Variant, state: TrainingState
) -> None:
    found = compare(variant, [run(digest, [2.0, loss]) for digest, loss in own], [run("a", [2.0, 1.5])] * 2)
    assert found.state is state
    assert (found.own is not None) is (state is TrainingState.REORDERED)
    assert (found.apart is not None) is (state is not TrainingState.EQUAL)


def test_one_run_as_it_is_shows_nothing_of_how_much_two_differ() -> None:
    assert compare(CHANGED, [run("b", [2.0, 1.5])], [run("a", [2.0, 1.5])]).usual is None
