"""Real TensorFlow recorded from within: what was there before, and block after block."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.capture.running import Run, ended, environment, line_of, own_lines
from tests.capture.spans import iterator_names, numbers

pytestmark = pytest.mark.tensorflow

BLOCKS = Path(__file__).with_name("scripts") / "blocks.py"

Did = Callable[[str], Run]
"""What blocks.py did, by the name of a recording; the script lies beside it."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(BLOCKS, tmp_path_factory.mktemp("record")))


@pytest.fixture(scope="module")
def recorded(script: Path) -> CompletedProcess[str]:
    return ended([sys.executable, str(script), "record"], script.parent, env=environment())


@pytest.fixture(scope="module")
def did(script: Path, recorded: CompletedProcess[str]) -> Did:
    assert recorded.returncode == 0, recorded.stderr
    return lambda name: Run(0, recorded.stdout, recorded.stderr, script.parent / name)


both = pytest.mark.parametrize("keras", ["keras 3", "keras 2"])


def without_logs(stderr: str) -> str:
    """Leave out what TensorFlow's C++ says, and that a callback of the script which records is slow."""
    logs = r"^.*(oneDNN|cudart|absl::|cpu_feature|instructions|is slow compared).*\n"
    return re.sub(logs, "", stderr, flags=re.MULTILINE)


def test_training_is_the_same_to_the_last_bit(recorded: CompletedProcess[str], tmp_path: Path) -> None:
    plain = ended([sys.executable, str(BLOCKS), "plain"], tmp_path, env=environment())
    assert recorded.stdout == plain.stdout != ""
    assert without_logs(own_lines(recorded.stderr)) == without_logs(plain.stderr)


FITS = {
    "fit": ("keras-fit", 10, 20, "steps", 60),
    "inner": ("keras-fit", 10, 20, "steps", 160),
    "callback": ("keras-fit", 10, 15, "steps", 60),
    "broken": ("keras-fit", 10, 20, "steps", 41),
    "on_top": ("keras-fit", 10, 20, "steps", 60),
    "outer": ("keras-fit", 10, 20, "steps", 60),
}

EXPECTED = {
    "earlier": ("tf-data-loop", 10, 20, "steps", 60),
    "raising": ("tf-data-loop", 2, 5, "steps", 20),
    "short": ("tf-data-loop", 1, 5, "end-of-block", 6),
    **{f"{keras}/{name}": expected for keras in ("keras 3", "keras 2") for name, expected in FITS.items()},
}
"""Where the steps were seen, the first one traced, how many, why no more, and how many there were."""


@pytest.mark.parametrize("name", EXPECTED)
def test_each_block_is_a_recording_of_its_own(did: Did, name: str) -> None:
    source, first, steps, reason, seen = EXPECTED[name]
    run = did(name)
    window, manifest = run.window, run.manifest
    assert (window.source, window.first_step, window.steps) == (source, first, steps)
    assert (window.stopped_by, manifest.steps.seen) == (reason, seen)
    assert (manifest.agent_errors, manifest.finished) == ((), True)
    assert numbers(run) == list(range(first, first + steps))


@both
def test_a_part_of_a_running_fit_can_be_recorded(did: Did, keras: str) -> None:
    run = did(f"{keras}/part")
    assert (run.window.source, run.window.steps, run.manifest.steps.seen) == ("keras-fit", 5, 41)
    assert run.window.first_step in (3, 4)  # Keras 2 has begun its marker already
    assert run.manifest.agent_errors == ()


def test_a_block_can_be_traced_by_time(did: Did) -> None:
    assert did("timed").window.stopped_by == "time"
    assert did("timed").window.steps > 0


def test_the_users_own_profiler_comes_first_though_its_name_was_known_before(did: Did, script: Path) -> None:
    window = did("lent").window
    assert (window.profiler, window.stopped_by) == ("user", "user-profiler")
    assert (window.source, window.steps) == ("tf-data-loop", 59)  # the first one shows what trains
    assert len(list(script.with_name("logs").rglob("*.xplane.pb"))) == 1


def test_a_recorder_inside_a_recorded_block_steps_aside(did: Did, script: Path) -> None:
    assert not list(script.parent.glob("*/within"))
    assert did("").stderr.count("outer is still running: end it before you start another.\n") == 2


def test_what_does_not_train_is_no_step(did: Did) -> None:
    assert did("between").manifest.window is None
    assert "no training step was seen in the block" in did("between").missing()["trace"]


def test_the_command_is_the_line_of_the_block_or_of_the_fit(did: Did, script: Path) -> None:
    for name, text in (("earlier", 'record("earlier")'), ("keras 2/callback", "/callback")):
        assert did(name).manifest.command == (f"blocks.py:{line_of(script, text)[1]}",)


def test_how_a_block_ended_is_recorded(did: Did) -> None:
    outcome, broken = did("raising").manifest.outcome, did("keras 3/broken")
    assert (outcome.exit_code, outcome.error) == (1, "KeyError: 'the block broke'")
    assert broken.manifest.outcome.exit_code is None
    assert "did not finish" in broken.missing()["end of the fit"]


def test_a_function_that_was_traced_before_is_known_by_its_gradients(did: Did, script: Path) -> None:
    (step,) = (graph for graph in did("earlier").program["graphs"] if graph["name"] == "step")
    lines = {operation["type"]: operation["at"] for operation in step["operations"]}
    assert lines["AssignSubVariableOp"] == line_of(script, "weights.assign_sub(")
    assert {operation["layer"] or None for operation in step["operations"]} == {None}
    assert [graph["name"] for graph in did("between").program["graphs"]] == ["predict"]


@both
def test_what_was_made_before_has_no_line_and_no_name(did: Did, keras: str) -> None:
    run = did(f"{keras}/fit")
    fed = {dataset["id"]: dataset for dataset in run.program["datasets"]}[run.program["feeds"]]
    assert (fed["class"], fed["at"], fed["trace_name"]) == ("_BatchDataset", None, None)
    layers = [entry for entry in run.program["layers"] if "input" not in entry["name"]]
    assert {entry["at"] and entry["at"][1] for entry in layers} == {None}
    assert "the model and the input pipeline were made before the block" in run.missing()["lines"]


@both
def test_what_is_made_inside_has_both(did: Did, script: Path, keras: str) -> None:
    run = did(f"{keras}/inner")
    made = [dataset for dataset in run.program["datasets"] if dataset["at"]]
    classes = ["_TensorSliceDataset", "_MapDataset", "_BatchDataset", "_PrefetchDataset"]
    assert [dataset["class"] for dataset in made] == classes
    ran = " ".join(iterator_names(run.recording.traces[0]))
    assert all(dataset["trace_name"] in ran for dataset in made)
    lines = {layer["name"]: layer["at"] for layer in run.program["layers"]}
    assert lines["dense_2"] == lines["dense_3"] == line_of(script, "keras.Sequential(")
    assert run.missing() == {}


@both
def test_what_stands_on_nameless_datasets_loses_its_name_and_a_seen_model_keeps_its_lines(
    did: Did, script: Path, keras: str
) -> None:
    """Else the stages below it would be taken for parts of it, with its line."""
    program, line = did(f"{keras}/on_top").program, line_of(script, "data.map(double).prefetch")
    upper = [dataset for dataset in program["datasets"] if dataset["at"] == line]
    assert [dataset["class"] for dataset in upper] == ["_MapDataset", "_PrefetchDataset"]
    assert {dataset["trace_name"] for dataset in upper} == {None}
    lines = {layer["name"]: layer["at"] for layer in program["layers"]}
    assert lines["dense_2"] == line_of(script, "keras.Sequential(")
    assert "dense" not in lines


@both
def test_other_models_are_left_out(did: Did, keras: str) -> None:
    """An operation of theirs may have the name of one that ran."""
    layers = {layer["name"] for layer in did(f"{keras}/broken").program["layers"]}
    assert {"dense_4", "dense_5"} <= layers
    assert not {"dense", "dense_2"} & layers
    assert did("raising").program["run"]["optimizer"] is None
