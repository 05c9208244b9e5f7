"""Real TensorFlow in runs of a trial: what they see and show, which settings arrive, and how they go wrong."""

import tempfile

from tests.e2e.kit import *
from tfdoctor.capture.agent.trial.settings import NO_XLA, POOL_THREADS
from tfdoctor.capture.plan import Kind
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import Part
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.layer import why_not
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner, TrialRun
from tfdoctor.trial.settings import CLUSTERING

INTRA = "TF_NUM_INTRAOP_THREADS"
COMPILED = "Compiled cluster using XLA"
ON = "oneDNN custom operations are on"


@pytest.fixture(scope="module", autouse=True, name="settings")
def fixture_of_settings() -> Iterator[None]:
    """Let TensorFlow log what it does, and choose everything itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS"):
            patch.delenv(name, raising=False)
        yield


def tried(
    folder: Path, words: Sequence[str], variant: Variant, most_s: float = 40.0, *, layer: bool = False
) -> tuple[TrialRun, Mapping[str, int], str]:
    """Run a script once; return what the run gave, how often settings reached something, and what was printed."""
    program = RecordedProgram((sys.executable, *words), folder, Kind.SCRIPT)
    with tempfile.TemporaryDirectory() as trial:
        stage = Runner(program, Path(trial).resolve(), layer)
        (run,) = stage.runs([variant], Enough(seconds=most_s, most_seconds=most_s))
        (path,) = stage.folder.glob("run0/processes/*/timing.json")
        reached = json.loads(path.read_text())["settings"]["reached"]
        return run, reached, (stage.folder / "run0" / "log").read_text(errors="replace")


GOES_WRONG = """
from pathlib import Path
import keras
import numpy as np
import tensorflow as tf

def read(n):
    print("read", flush=True)
    return np.full(4, n, "float32"), np.zeros(1, "float32")

def pair(n):
    x, y = tf.numpy_function(read, [n], (tf.float32, tf.float32))
    return tf.ensure_shape(x, (4,)), tf.ensure_shape(y, (1,))

data = tf.data.Dataset.range(24).map(pair).batch(48).repeat(50)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e30), "mse", jit_compile=False)
model.fit(data, epochs=2, verbose=0)
for thread in Path("/proc/self/task").glob("*/comm"):
    print("threads", thread.read_text().strip(), 1)
print("done", flush=True)
"""


@pytest.mark.tensorflow
def test_a_run_with_xla_for_all_graphs_and_without_its_input_tells_that_weights_are_infinite(
    tmp_path: Path,
) -> None:
    """In a layer, where there is one; the input is read for the first batches only."""
    (tmp_path / "script.py").write_text(GOES_WRONG)
    without = RunPart(part=Part.INPUT, name="input", ms=1.0)
    environment = {"TF_XLA_FLAGS": CLUSTERING, INTRA: "9"}
    variant = Variant("without", environment=environment, without=without)
    run, _, log = tried(tmp_path, ["script.py"], variant, 300.0, layer=not why_not(tmp_path))
    assert (run.error, run.ineffective, run.finite) == ("", "", False)
    assert run.times, run.why
    assert run.times.loop.examples == 24  # all that there are, whatever the batch is
    lines = log.splitlines()
    assert "done" in lines
    assert 8 * 24 <= lines.count("read") < 600  # of 2400
    assert (COMPILED in log, ON in log) == (True, True)
    assert threads(log, "tf_XLAEigen") == 9  # as many as intra-op threads, to which TensorFlow gives no name


# Settings


def threads(log: str, name: str) -> int:
    rows = (line.split() for line in log.splitlines() if line.startswith("threads "))
    return sum(int(row[-1]) for row in rows if row[1] == name)


@pytest.mark.tensorflow
def test_each_setting_arrives_in_the_program_or_its_run_has_no_figure() -> None:
    names = "TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS"
    environment, runner = dict(zip(names, "05", strict=True)) | {INTRA: "1"}, {POOL_THREADS: 40, NO_XLA: 1}
    run, reached, log = tried(SCRIPTS, ["set_up.py", "xla"], Variant("several", {}, environment, runner))
    assert run.times, run
    assert run.times.loop.examples == 4  # of the loop that trains
    assert reached[NO_XLA] > 0
    assert threads(log, "tf_Compute") == 5
    assert (COMPILED in log, ON in log) == (False, False)

    environment = {INTRA: "1", **dict.fromkeys(names, "0")}
    run, reached, own = tried(SCRIPTS, ["set_up.py", "sets"], Variant("replaced", {}, environment, {NO_XLA: 1}))
    assert (run.times, run.why) == (None, f"the program sets {' and '.join(names)} itself")
    assert reached == {NO_XLA: 0}  # no function is compiled with XLA, and TensorFlow's own do not count
    assert threads(own, "tf_Compute") == 2
    assert threads(log, "python") > threads(own, "python") + 35


# Ctrl-C

TRY = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tfdoctor import cli
from tfdoctor.capture.plan import Kind
from tfdoctor.trial import trial
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner

def conduct():
    program = RecordedProgram((sys.executable, "-c", "import time; time.sleep(60)"), Path.cwd(), Kind.SCRIPT)
    with TemporaryDirectory() as folder:
        stage = Runner(program, Path(folder).resolve(), False)
        trial.conduct(stage, trial.Agenda([Variant("no")], min, say=lambda text: print(text, flush=True)))

cli.app = lambda **_: conduct()
cli.main()
"""


def test_ctrl_c_before_a_round_has_ended_is_one_sentence(tmp_path: Path) -> None:
    folder, temporary = tmp_path / "project", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    variables = environment(PYTHONPATH=str(SOURCES), TMPDIR=str(temporary))
    child = subprocess.Popen([sys.executable, "-c", TRY], cwd=folder, env=variables, **streams)
    assert child.stdout is not None
    child.stdout.readline()  # a run begins
    until(lambda: len(processes_in(folder)) == 3)  # with the program, and what ends it when tfdoctor is gone
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "tfdoctor: Nothing was measured before the interrupt.\n")
    until(lambda: not processes_in(folder), 40)  # the program itself would last for a minute
    assert ([*folder.iterdir()], [*temporary.glob("tfdoctor*")]) == ([], [])


def processes_in(folder: Path) -> list[str]:
    """Return the numbers of processes that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder:
                found.append(process.name)
        except OSError:  # it has ended meanwhile, or is another user's
            continue
    return found
