"""Real TensorFlow under tfdoctor: what is traced, what is learnt, and that nothing else changes."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import Run, environment, line_of, own_lines, plain, profiled
from tests.capture.spans import Mark, iterator_names, marks, numbers
from tfdoctor.recording.program import DIGITS

pytestmark = pytest.mark.tensorflow

TRAINING = Path(__file__).with_name("scripts") / "training.py"

STAMP = re.compile(r"(?<=^[IWEF])\d{4} [\d:.]+ +\d+(?= )", re.MULTILINE)
"""The time and process of a line of TensorFlow's log."""

Profile = Callable[..., Run]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training script in a folder of its own, as a user has it."""
    folder = tmp_path_factory.mktemp("project")
    return Path(shutil.copy(TRAINING, folder / "train.py"))


@pytest.fixture(scope="module")
def profile(script: Path, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    def run(mode: str, *args: str, **plan: Any) -> Run:
        out = tmp_path_factory.mktemp("recordings") / mode
        return profiled(script, out, mode, *args, **plan)

    return run


@pytest.fixture(scope="module")
def fit(profile: Profile) -> Run:
    return profile("fit")


def traced(run: Run, name: str) -> list[Mark]:
    (trace,) = run.recording.traces
    return [mark for mark in marks(trace) if mark.name == name]


def clean(run: Run) -> None:
    assert run.manifest.agent_errors == ()
    assert run.missing() == {}


# Keras fit


def test_fit_is_traced_as_planned(fit: Run) -> None:
    clean(fit)
    assert fit.code == 0
    assert numbers(fit) == list(range(10, 30))
    assert all(mark.stat("_r") == 1 and mark.stat("steps") == 1 for mark in traced(fit, "train"))
    window = fit.window
    assert (window.first_step, window.steps, window.calls) == (10, 20, 20)
    assert (window.stopped_by, window.source, window.contains_warmup) == ("steps", "keras-fit", False)
    assert fit.manifest.steps.seen == 60


def test_evaluation_is_marked_apart(fit: Run) -> None:
    assert [mark.stat("step_num") for mark in traced(fit, "test")] == [0, 1, 2]


def test_fit_says_what_it_cost(fit: Run) -> None:
    untraced = fit.manifest.steps.untraced
    assert untraced is not None
    # 60 less 20 traced, up to half of the 30 after them, which are sampled, the one that builds, and the last:
    assert 23 <= untraced.count < 38
    assert 0 < (untraced.median_ms or 0.0) < 1000


def test_versions_and_host_are_known(fit: Run) -> None:
    assert fit.manifest.versions is not None
    assert set(fit.manifest.versions) >= {"python", "tensorflow", "keras", "numpy"}
    assert fit.manifest.host.cores_usable > 0
    host = fit.recording.samples[-1].host
    assert host is not None
    assert (host.memory_total_bytes or 0) > 0


def test_operations_have_shapes_lines_and_layers(fit: Run, script: Path) -> None:
    operations = {
        operation["name"]: operation
        for graph in fit.program["graphs"]
        if graph["name"] == "one_step_on_data"
        for operation in graph["operations"]
    }
    products = [op for op in operations.values() if op["type"] == "MatMul"]
    owners = {op["layer"] for op in products if not op["name"].startswith("gradient_tape")}
    assert owners == {"dense", "dense_1", "dense_2"}
    first = next(op for op in products if op["inputs"][0] == ["float32", [None, 8]])
    assert first["outputs"] == [["float32", [None, 5]]]
    assert first["attrs"]["transpose_a"] is False
    assert first["layer"] == "dense"
    assert first["at"] == line_of(script, "model.fit(pipeline(20)")
    graph = next(one for one in fit.program["graphs"] if one["name"] == "one_step_on_data")
    feeding = graph["operations"][first["from"][0]]
    assert feeding["outputs"][0] == first["inputs"][0]
    inner = next(op for op in products if op["layer"] == "dense_1")
    assert inner["at"] == line_of(script, "return self.inner(x) * 2.0")


def test_layers_have_the_line_that_made_them(fit: Run, script: Path) -> None:
    layers = {layer["name"]: layer for layer in fit.program["layers"]}
    assert layers["dense_1"]["at"] == line_of(script, "self.inner = keras.layers.Dense(6)")
    assert layers["twice"]["class"] == "Twice"
    assert layers["dense_1"]["config"]["units"] == 6
    assert layers["dense_1"]["policy"] == "float32"
    kernel = next(w for w in layers["dense_1"]["weights"] if w["name"] == "kernel")
    assert kernel == {"name": "kernel", "shape": [5, 6], "dtype": "float32"}


def test_the_pipeline_that_feeds_is_known(fit: Run, script: Path) -> None:
    datasets = {dataset["id"]: dataset for dataset in fit.program["datasets"]}
    batch = datasets[fit.program["feeds"]]
    assert (batch["class"], batch["parameters"]["batch_size"]) == ("_BatchDataset", 4)
    assert batch["cardinality"] == 20
    shuffle = datasets[batch["inputs"][0]]
    assert shuffle["parameters"]["buffer_size"] == 16
    mapped = datasets[shuffle["inputs"][0]]
    assert mapped["function"] == {
        "name": "double",
        "at": line_of(script, "def double(x, y):"),
        "python": False,
        "types": ["Const", "Identity", "Mul", "Placeholder"],
        "stateful": [],
    }
    assert mapped["parameters"]["num_parallel_calls"] is None
    assert mapped["at"] == line_of(script, ".map(double)")
    names = iterator_names(fit.recording.traces[0])
    assert {batch["trace_name"], shuffle["trace_name"], mapped["trace_name"]} <= names


def test_how_the_run_was_set_up(fit: Run) -> None:
    run = fit.program["run"]
    assert (run["policy"], run["optimizer"], run["steps_per_execution"]) == ("float32", "Adam", 1)
    assert run["devices"] == ["/device:CPU:0"]
    assert (run["strategy"], run["replicas"]) == ("_DefaultDistributionStrategy", 1)
    assert "replica_devices" not in run  # the default strategy would not tell them
    assert fit.program["input_kind"] == "tf.data"


def test_sources_are_hashed(fit: Run, script: Path) -> None:
    assert list(fit.program["sources"]) == list(fit.program["lines"]) == [str(script)]
    digits, text = fit.program["lines"][str(script)], script.read_bytes().splitlines()
    assert len(digits) == DIGITS * len(text)
    assert digits[DIGITS : 2 * DIGITS] == hashlib.sha256(text[1].strip()).hexdigest()[:DIGITS]


# Ends


def test_ctrl_c_in_the_window_of_a_fit_of_arrays(profile: Profile, script: Path) -> None:
    run = profile("arrays")
    clean(run)
    assert run.code == 130
    assert numbers(run) == list(range(10, 15))
    assert run.window.stopped_by == "interrupt"
    assert run.program["input_kind"] == "arrays"
    datasets = {dataset["id"]: dataset for dataset in run.program["datasets"]}
    assert datasets[run.program["feeds"]]["at"] == line_of(script, "batch_size=4, epochs=1")
    assert run.program["run"]["batch_size"] == 4


def test_stop_after_ends_the_run_and_runs_finally(profile: Profile, tmp_path: Path) -> None:
    """So do handlers of the end, and no open file loses anything; threads that feed an iterator hold nothing up."""
    file = tmp_path / "left_open"
    run = profile("finally_runs", str(file), stop_after=True, warmup=3, steps=4)
    clean(run)
    assert run.code == 0
    assert run.stdout == "cleaned up\nhandled\n"
    assert file.read_text() == "written"
    assert numbers(run) == [3, 4, 5, 6]
    assert 7 <= run.manifest.steps.seen <= 7 + 5 * 4  # those that are sampled


# The user's own profiler comes first


def test_the_users_profiler_ends_our_window(profile: Profile, tmp_path: Path) -> None:
    """The profiler's messages stand in the script's output for theirs, and not for our windows before and after."""
    theirs = tmp_path / "theirs"
    run = profile("own_profiler_later", str(theirs), env=environment(TF_CPP_MIN_LOG_LEVEL="0"))
    clean(run)
    assert run.code == 0
    assert numbers(run) == list(range(18, 38))  # theirs is over, and ours begins anew
    assert list(theirs.glob("plugins/profile/*/*.xplane.pb"))
    assert run.stderr.count("Profiler session started") == 1
    assert re.findall("Collecting XSpace to repository: (.*)/plugins", run.stderr) == [str(theirs)]


def test_training_is_bit_identical_and_the_message_of_a_failed_operation_the_same(
    profile: Profile, script: Path
) -> None:
    alone, run = plain(script, "graph_error"), profile("graph_error")
    clean(run)
    assert run.code == alone.returncode == 1
    assert len(alone.stdout.split()[0]) == 64
    assert run.stdout == alone.stdout
    assert "Detected at node" in alone.stderr
    assert STAMP.sub("", own_lines(run.stderr)) == STAMP.sub("", alone.stderr)
