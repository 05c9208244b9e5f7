"""Parts are taken out of a real program; where there is nothing to take out, the run says so."""

import sys
from pathlib import Path

import pytest

from tfdoctor.capture.plan import Kind
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.times import NoTimes, TrialTimes
from tfdoctor.trial.trial_run import TrialRun

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import keras
import numpy as np
import tensorflow as tf

def read(n):
    print("read", flush=True)
    return np.full(4, n, "float32"), np.zeros(1, "float32")

def pair(n):
    x, y = tf.numpy_function(read, [n], (tf.float32, tf.float32))
    return tf.ensure_shape(x, (4,)), tf.ensure_shape(y, (1,))

data = tf.data.Dataset.range(400).map(pair).batch(4)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=2, verbose=0)
print("done", flush=True)
"""


def ran(folder: Path, part: RunPart) -> tuple[TrialRun, str]:
    """Run the script once without a part; return what the run gave, and what the script printed."""
    (folder / "script.py").write_text(SCRIPT)
    program = RecordedProgram((sys.executable, "script.py"), folder, Kind.SCRIPT)
    with Runner.of(program, layer=False) as stage:
        run = stage.run(Variant("without", without=part), Enough.whole(300.0), 0)
        return run, (stage.folder / "run0" / "log").read_text(errors="replace")


def test_the_input_is_read_for_the_first_batches_only(tmp_path: Path) -> None:
    run, log = ran(tmp_path, RunPart(part=Part.INPUT, name="input", ms=1.0))
    assert not run.error
    assert not run.ineffective
    assert log.rstrip().endswith("done")
    assert 8 * 4 <= log.count("read") < 100  # of 800


def test_a_part_that_is_not_there_is_no_part_that_takes_no_time(tmp_path: Path) -> None:
    run, _ = ran(tmp_path, RunPart(part=Part.CALLBACK, name="Snapshot", ms=1.0))
    assert run.ineffective == "nothing of it ran in the steps that were timed"
    assert not isinstance(run.times, TrialTimes)
    assert isinstance(run.times, NoTimes)
