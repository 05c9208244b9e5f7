"""The examples of a step are seen in each run: the figures are per example where they differ."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from tests.trial.made import Machine, join, row, stage_of
from tests.trial.test_times import loop
from tfdoctor.diagnosis.trials import Difference, TrainingState, Trial
from tfdoctor.trial import trial
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import AS_IS, Variant
from tfdoctor.trial.times import Loop, times_of
from tfdoctor.trial.trial_run import TrialRun

LARGER = Variant("batch x 2", examples=Fraction(2), model="a step has 64 examples instead of 32", may_keep=False)


def tried(
    clock: Callable[[float], None], variant: Variant, factor: float, as_is: list[int], own: list[int]
) -> Trial:
    """Return the row of a variant whose step takes a factor of the time, with these batches."""
    machine = Machine({variant.name: factor}, tick=clock)
    plain = machine.run

    def run(one: Variant, enough: Enough) -> TrialRun:
        found = plain(one, enough)
        made = loop([10 * (1 if one.name == AS_IS else factor)] * 300, examples=as_is if one.name == AS_IS else own)
        return TrialRun(*times_of(Loop.read(made)), found.state, finite=True, seconds=15)

    trials, _ = trial.conduct(stage_of(run), trial.Agenda([variant], join, 60.0))
    return row(trials, variant.name)


def test_a_patch_with_a_smaller_batch_is_compared_per_example(clock: Callable[[float], None]) -> None:
    """A step of 4 examples instead of 32 is 80 % shorter, and takes longer for as many examples."""
    found = tried(clock, Variant("mine.diff"), 0.2, [32] * 4, [4, 4, 4, 2])
    assert found.examples == 0.125
    assert found.measured is not None
    assert found.measured.difference is Difference.COSTS
    assert found.measured.share == pytest.approx(-0.6, abs=0.01)
    assert found.training is not None
    assert found.training.state is TrainingState.CHANGED
    assert found.training.why == "a step has 4 examples instead of 32"


def test_a_larger_batch_that_does_not_reach_the_steps_has_no_figure(clock: Callable[[float], None]) -> None:
    """A data set of 24 examples gives 24, whatever the batch is."""
    found = tried(clock, LARGER, 1.0, [24] * 4, [24] * 4)
    assert found.measured is None
    assert "as many examples as without it" in found.missing


def test_a_larger_batch_is_per_example_only_where_its_size_is_seen(clock: Callable[[float], None]) -> None:
    seen = tried(clock, LARGER, 1.2, [32] * 4, [64] * 4)
    assert seen.measured is not None
    assert seen.measured.share == pytest.approx(0.4, abs=0.01)
    assert tried(clock, LARGER, 1.2, [32] * 4, []).measured is None
    assert tried(clock, LARGER, 1.2, [32] * 4, [64, 64, 40, 40]).measured is None
    assert "48 examples" in tried(clock, LARGER, 1.2, [32] * 4, [48] * 4).missing


def test_unknown_examples_of_a_patch_leave_its_figure_as_it_is(clock: Callable[[float], None]) -> None:
    found = tried(clock, Variant("mine.diff"), 0.5, [], [4] * 4)
    assert found.examples == 1
    assert found.measured is not None
    assert found.measured.share == pytest.approx(0.5, abs=0.01)
