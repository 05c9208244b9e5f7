"""The examples of a step are seen in each run: the figures are per example where they differ."""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from tests.trial.made import Machine, join, row, stage_of
from tests.trial.test_times import loop
from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis.trials import Difference, TrainingState, Trial
from tfdoctor.trial import trial
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import AS_IS, ORIGINAL, RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.times import Loop, TrialTimes, times_of
from tfdoctor.trial.trial_run import TrialRun

LARGER = Variant("batch x 2", examples=Fraction(2), model="a step has 64 examples instead of 32", may_keep=False)


def tried(
    clock: Callable[[float], None], variant: Variant, factor: float, as_is: list[int], own: list[int]
) -> Trial:
    """Return the row of a variant whose step takes a factor of the time, with these batches."""
    machine = Machine({variant.name: factor}, tick=clock)
    plain = machine.run

    def run(one: Variant, enough: Enough, number: int) -> TrialRun:
        found = plain(one, enough, number)
        assert isinstance(found.times, TrialTimes)
        made = loop([10 * (1 if one.name == AS_IS else factor)] * 300, examples=as_is if one.name == AS_IS else own)
        return TrialRun(times_of(Loop.read(made)), found.state, finite=True, seconds=15)

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


KERAS = """
import keras, numpy as np, tensorflow as tf
x = np.zeros((24, 8, 8, 1), "float32")
data = tf.data.Dataset.from_tensor_slices((x, np.zeros(24, "float32"))).batch(48).repeat()
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, steps_per_epoch=5000, verbose=0)
"""

LOOP = """
import tensorflow as tf
for _ in tf.data.Dataset.range(100).batch(7):
    pass
w = tf.Variable(tf.zeros((3, 1)))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x @ w)
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss
for x in tf.data.Dataset.from_tensor_slices(tf.ones((64, 3))).batch(16).repeat(5000):
    step(x)
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize(("script", "examples"), [(KERAS, 24), (LOOP, 16)])
def test_the_batches_of_a_run_are_seen(script: str, examples: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script)
    program = RecordedProgram((sys.executable, "train.py"), tmp_path, Kind.SCRIPT)
    with Runner.of(program, layer=False) as stage:
        run = stage.run(ORIGINAL, Enough(seconds=0.5), 0)
    assert isinstance(run.times, TrialTimes), run
    assert run.times.loop.examples == examples
