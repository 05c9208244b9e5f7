"""Real TensorFlow in runs of a trial: what they see, what they show, and how they go wrong."""

from contextlib import AbstractContextManager

from tests.e2e.kit import *
from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis.trials import TrainingState
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import ORIGINAL, RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.training import compare


def stage_of(folder: Path, *words: object) -> AbstractContextManager[Runner]:
    """Return a stage on which a script runs."""
    program = RecordedProgram((sys.executable, *map(str, words)), folder, Kind.SCRIPT, QUIET)
    return Runner.of(program, layer=False)


@pytest.mark.tensorflow
def test_a_parallel_map_that_draws_random_numbers_is_no_fault(tmp_path: Path) -> None:
    """The script repeats bit by bit, the change does not: that is its order of random numbers."""
    script, text = tmp_path / "train.py", SCRIPTS.joinpath("random_flips.py").read_text()
    script.write_text(text)
    other = f"{text.replace('.map(augment)', '.map(augment, num_parallel_calls=4)')}print('changed')\n"
    changed = Variant("parallel", {script: other.encode()}, exact=True, reorders=True)
    enough = Enough(compare_at=4, fewest=6, steps=6, seconds=0.0)
    with stage_of(tmp_path, "train.py", 60) as stage:
        *as_is, first, second = stage.runs([ORIGINAL, ORIGINAL, changed, changed], enough)
    for run in (*as_is, first, second):
        assert (run.error, run.finite) == ("", True)
        assert run.times, run.why
        assert run.times.loop.examples == 24  # all that there are, whatever the batch is
    assert compare(changed, (first, second), as_is).state is TrainingState.REORDERED
    assert script.read_text() == text


@pytest.mark.tensorflow
def test_weights_that_become_infinite_are_told(tmp_path: Path) -> None:
    with stage_of(tmp_path, SCRIPTS / "goes_wrong.py") as stage:
        enough = Enough(compare_at=4, fewest=6, steps=6, seconds=1.0)
        assert stage.runs([ORIGINAL], enough)[0].finite is False


READS = """
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


@pytest.mark.tensorflow
def test_the_input_is_read_for_the_first_batches_only(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(READS)
    variant = Variant("without", without=RunPart(part=Part.INPUT, name="input", ms=1.0))
    with stage_of(tmp_path, "script.py") as stage:
        (run,) = stage.runs([variant], Enough.whole(300.0))
        log = (stage.folder / "run0" / "log").read_text(errors="replace")
    assert (run.error, run.ineffective) == ("", "")
    assert log.rstrip().endswith("done")
    assert 8 * 4 <= log.count("read") < 100  # of 800


TRY = """
import sys
from pathlib import Path
from tests.trial.made import join
from tfdoctor import cli
from tfdoctor.capture.plan import Kind
from tfdoctor.trial import trial
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.training import compare

def conduct():
    program = RecordedProgram((sys.executable, "-c", "import time; time.sleep(60)"), Path.cwd(), Kind.SCRIPT)
    with Runner.of(program, layer=False) as stage:
        trial.conduct(stage, trial.Agenda([Variant("no")], join, say=lambda text: print(text, flush=True)))

cli.app = lambda **_: conduct()
cli.main()
"""


def test_ctrl_c_before_a_round_has_ended_is_one_sentence(tmp_path: Path) -> None:
    folder, temporary = tmp_path / "project", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    variables = environment(PYTHONPATH=f"{ROOT}{os.pathsep}{SOURCES}", TMPDIR=str(temporary))
    child = subprocess.Popen([sys.executable, "-c", TRY], cwd=folder, env=variables, **streams)
    assert child.stdout is not None
    child.stdout.readline()  # a run begins
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "tfdoctor: Nothing was measured before the interrupt.\n")
    assert ([*folder.iterdir()], [*temporary.glob("tfdoctor*")], processes_in(folder)) == ([], [], [])


def processes_in(folder: Path) -> list[str]:
    """Return the commands of processes that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder:
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended meanwhile, or is another user's
            continue
    return found
