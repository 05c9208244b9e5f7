"""Real TensorFlow recorded from within: what was there before, and block after block."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import environment, own_lines
from tests.capture.spans import iterator_names, marks
from tfdoctor.recording import PROGRAM, Manifest, Recording

pytestmark = pytest.mark.tensorflow

BLOCKS = Path(__file__).with_name("scripts") / "blocks.py"


class Did:
    """What blocks.py did, and where it left its recordings."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.script = Path(shutil.copy(BLOCKS, folder / "blocks.py"))
        done = subprocess.run(
            [sys.executable, str(self.script), mode],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(),
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.stdout, self.stderr = done.stdout, done.stderr

    def recording(self, name: str) -> Recording:
        return Recording.open(self.script.parent / name)

    def manifest(self, name: str) -> Manifest:
        found = self.recording(name).manifest
        assert found is not None
        return found

    def program(self, name: str) -> Any:
        """Return the program record as it was written."""
        root = self.recording(name).root
        assert root is not None
        return json.loads(gzip.decompress((root / PROGRAM).read_bytes()))

    def missing(self, name: str) -> dict[str, str]:
        return {entry.what: entry.why for entry in self.manifest(name).missing}

    def line(self, text: str) -> list[object]:
        lines = self.script.read_text().splitlines()
        (number,) = (number for number, line in enumerate(lines, 1) if text in line)
        return [str(self.script), number]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Did, Did]:
    """Return a run without recording and one with."""
    plain, record = (Did(tmp_path_factory.mktemp(mode), mode) for mode in ("plain", "record"))
    return plain, record


@pytest.fixture(scope="module")
def did(pair: tuple[Did, Did]) -> Did:
    return pair[1]


both = pytest.mark.parametrize("keras", ["keras 3", "keras 2"])


def without_logs(stderr: str) -> str:
    """Leave out what TensorFlow's C++ says, and that a callback of the script which records is slow."""
    logs = r"^.*(oneDNN|cudart|absl::|cpu_feature|instructions|is slow compared).*\n"
    return re.sub(logs, "", stderr, flags=re.MULTILINE)


def test_training_is_the_same_to_the_last_bit(pair: tuple[Did, Did]) -> None:
    plain, recorded = pair
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
    manifest = did.manifest(name)
    window = manifest.window
    assert window is not None
    assert (window.source, window.first_step, window.steps) == (source, first, steps)
    assert (window.stopped_by, manifest.steps.seen) == (reason, seen)
    assert manifest.agent_errors == ()
    assert manifest.finished
    (trace,) = did.recording(name).traces
    numbers = [mark.stat("step_num") for mark in marks(trace) if mark.name == "train"]
    left = [number for number in numbers if number not in manifest.steps.discarded]
    assert left == list(range(first, first + steps))


@both
def test_a_part_of_a_running_fit_can_be_recorded(did: Did, keras: str) -> None:
    manifest = did.manifest(f"{keras}/part")
    window = manifest.window
    assert window is not None
    assert (window.source, window.steps, manifest.steps.seen) == ("keras-fit", 5, 41)
    assert window.first_step in (3, 4)  # Keras 2 has begun its marker already
    assert manifest.agent_errors == ()


def test_a_block_can_be_traced_by_time(did: Did) -> None:
    window = did.manifest("timed").window
    assert window is not None
    assert window.stopped_by == "time"
    assert window.steps > 0


def test_the_users_own_profiler_comes_first_though_its_name_was_known_before(did: Did) -> None:
    window = did.manifest("lent").window
    assert window is not None
    assert (window.profiler, window.stopped_by) == ("user", "user-profiler")
    assert (window.source, window.steps) == ("tf-data-loop", 59)  # the first one shows what trains
    assert len(list((did.script.parent / "logs").rglob("*.xplane.pb"))) == 1


def test_a_recorder_inside_a_recorded_block_steps_aside(did: Did) -> None:
    assert not list(did.script.parent.glob("*/within"))
    assert did.stderr.count("outer is still running: end it before you start another.\n") == 2


def test_what_does_not_train_is_no_step(did: Did) -> None:
    assert did.manifest("between").window is None
    assert "no training step was seen in the block" in did.missing("between")["trace"]


def test_the_command_is_the_line_of_the_block_or_of_the_fit(did: Did) -> None:
    for name, text in (("earlier", 'record("earlier")'), ("keras 2/callback", "/callback")):
        assert did.manifest(name).command == (f"blocks.py:{did.line(text)[1]}",)


def test_how_a_block_ended_is_recorded(did: Did) -> None:
    outcome = json.loads((did.script.parent / "raising" / "tfdoctor.json").read_text())["outcome"]
    assert (outcome["exit_code"], outcome["error"]) == (1, "KeyError: 'the block broke'")
    assert did.manifest("keras 3/broken").outcome.exit_code is None
    assert "did not finish" in did.missing("keras 3/broken")["end of the fit"]


def test_a_function_that_was_traced_before_is_known_by_its_gradients(did: Did) -> None:
    (step,) = (graph for graph in did.program("earlier")["graphs"] if graph["name"] == "step")
    lines = {operation["type"]: operation["at"] for operation in step["operations"]}
    assert lines["AssignSubVariableOp"] == did.line("weights.assign_sub(")
    assert {operation["layer"] or None for operation in step["operations"]} == {None}
    assert [graph["name"] for graph in did.program("between")["graphs"]] == ["predict"]


@both
def test_what_was_made_before_has_no_line_and_no_name(did: Did, keras: str) -> None:
    program = did.program(f"{keras}/fit")
    fed = {dataset["id"]: dataset for dataset in program["datasets"]}[program["feeds"]]
    assert (fed["class"], fed["at"], fed["trace_name"]) == ("_BatchDataset", None, None)
    assert {entry["at"] and entry["at"][1] for entry in program["layers"] if "input" not in entry["name"]} == {None}
    assert "the model and the input pipeline were made before the block" in did.missing(f"{keras}/fit")["lines"]


@both
def test_what_is_made_inside_has_both(did: Did, keras: str) -> None:
    program = did.program(f"{keras}/inner")
    made = [dataset for dataset in program["datasets"] if dataset["at"]]
    assert [dataset["class"] for dataset in made] == [
        "_TensorSliceDataset",
        "_MapDataset",
        "_BatchDataset",
        "_PrefetchDataset",
    ]
    ran = " ".join(iterator_names(did.recording(f"{keras}/inner").traces[0]))
    assert all(dataset["trace_name"] in ran for dataset in made)
    lines = {layer["name"]: layer["at"] for layer in program["layers"]}
    assert lines["dense_2"] == lines["dense_3"] == did.line("keras.Sequential(")
    assert did.missing(f"{keras}/inner") == {}


@both
def test_what_stands_on_nameless_datasets_loses_its_name(did: Did, keras: str) -> None:
    """Else the stages below it would be taken for parts of it, with its line."""
    program = did.program(f"{keras}/on_top")
    upper = [dataset for dataset in program["datasets"] if dataset["at"] == did.line("data.map(double).prefetch")]
    assert [dataset["class"] for dataset in upper] == ["_MapDataset", "_PrefetchDataset"]
    assert {dataset["trace_name"] for dataset in upper} == {None}


@both
def test_lines_of_a_model_that_was_seen_being_made_are_kept(did: Did, keras: str) -> None:
    lines = {layer["name"]: layer["at"] for layer in did.program(f"{keras}/on_top")["layers"]}
    assert lines["dense_2"] == did.line("keras.Sequential(")
    assert "dense" not in lines


@both
def test_other_models_are_left_out(did: Did, keras: str) -> None:
    """An operation of theirs may have the name of one that ran."""
    layers = {layer["name"] for layer in did.program(f"{keras}/broken")["layers"]}
    assert {"dense_4", "dense_5"} <= layers
    assert not {"dense", "dense_2"} & layers
    assert did.program("raising")["run"]["optimizer"] is None
