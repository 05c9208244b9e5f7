"""Real loops in styles that show no `Model.fit` of Keras 3 and no dataset, and others in one process."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.running import SOURCES, Run, environment, plain, profiled
from tests.capture.spans import iterator_names, marks

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("scripts") / "loops.py"
TRAINING = SCRIPT.with_name("training.py")

Recorded = Callable[[str], Run]

SEVERAL = """
import runpy, sys, tfdoctor
loops, training = map(runpy.run_path, sys.argv[1:])
for name, script, steps in (
    ("mirrored", training, 20),
    ("on_batch", training, 20),
    ("execution", training, 6),
    ("pipelines", training, 20),
    ("repeated", loops, 20),
    ("eager", loops, 20),
    ("gan", loops, 20),
    ("in_graph", loops, 20),
):
    with tfdoctor.record(name, steps=steps, sample_every_ms=0):
        script[name]()
"""
"""Each way of training is recorded by itself, and all in one process."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("several")
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, str(SCRIPT), str(TRAINING)],
        cwd=folder,
        env=environment(PYTHONPATH=str(SOURCES)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    def named(name: str) -> Run:
        run = Run(done.returncode, done.stdout, done.stderr, folder / name)
        assert run.manifest.agent_errors == ()
        return run

    return named


def numbers(run: Run) -> list[int]:
    """Return the numbers of the marked steps that were steps."""
    (trace,) = run.recording.traces
    found = marks(trace)
    assert found[-1].name == "tfdoctor_end"
    numbers = [mark.stat("step_num") for mark in found if mark.name == "train"]
    return [number for number in numbers if number not in run.manifest.steps.discarded]


@pytest.mark.parametrize(
    ("name", "source", "seen"),
    [("repeated", "repeated-call", 50), ("eager", "eager-gradient", 40), ("on_batch", "tf-data-loop", 40)],
)
def test_a_style_is_seen(recorded: Recorded, name: str, source: str, seen: int) -> None:
    run = recorded(name)
    assert numbers(run) == list(range(10, 30))
    assert (run.manifest.steps.source, run.manifest.steps.seen) == (source, seen)


def test_two_models_in_turn(recorded: Recorded) -> None:
    run = recorded("gan")
    assert numbers(run) == list(range(10, 30))
    assert [candidate.steps for candidate in run.manifest.steps.candidates] == [40, 40, 40]
    assert "of 3 training loops" in run.manifest.steps.why


def test_a_loop_inside_a_function(recorded: Recorded) -> None:
    run = recorded("in_graph")
    assert numbers(run) == []
    assert run.manifest.steps.source == "graph-loop"
    assert run.manifest.window is not None
    assert run.manifest.window.at is not None
    assert run.manifest.window.at[0] == str(SCRIPT)
    assert run.program["graphs"]


def test_a_loop_over_a_distributed_dataset(recorded: Recorded) -> None:
    run = recorded("mirrored")
    assert len(numbers(run)) == 20
    assert run.manifest.steps.seen == 40
    told = run.program["run"]
    assert (told["strategy"], told["replicas"]) == ("MirroredStrategy", 2)
    lines = TRAINING.read_text().splitlines()
    made = next(at for at, text in enumerate(lines, start=1) if "MirroredStrategy(" in text)
    assert told["strategy_at"] == [str(TRAINING), made]
    assert told["replica_devices"] == ["/physical_device:CPU:0"] * 2


def test_steps_per_execution_aligns_the_window_to_calls(recorded: Recorded) -> None:
    run = recorded("execution")
    assert numbers(run) == [12, 16, 20, 24, 28]  # five calls, though two would hold six steps
    (trace,) = run.recording.traces
    assert {mark.stat("steps") for mark in marks(trace) if mark.name == "train"} == {4}
    window = run.manifest.window
    assert window is not None
    assert (window.steps, window.calls) == (20, 5)
    assert run.manifest.steps.seen == 80


def test_datasets_are_named_as_in_the_trace(recorded: Recorded) -> None:
    run = recorded("pipelines")
    assert run.missing().keys() == {"samples"}  # nobody asked for them
    names = iterator_names(run.recording.traces[0])
    datasets = {dataset["id"]: dataset for dataset in run.program["datasets"]}
    chain = [datasets[run.program["feeds"]]]
    while chain[-1]["inputs"]:
        chain.append(datasets[chain[-1]["inputs"][0]])
    known = {dataset["class"]: dataset["trace_name"] for dataset in chain}
    assert None not in known.values()
    seen = {name.rstrip(")").rpartition(",")[2].rpartition("(")[2] for name in names}
    assert {known["_PrefetchDataset"], known["_TakeDataset"], known["_RepeatDataset"]} <= seen


# In processes of their own: each changes how TensorFlow behaves


def test_a_session(tmp_path: Path) -> None:
    run = profiled(SCRIPT, tmp_path / "out", "session")
    assert (run.code, run.manifest.agent_errors) == (0, ())
    assert run.stdout == plain(SCRIPT, "session").stdout
    assert numbers(run) == list(range(10, 30))
    assert run.manifest.steps.source == "session-run"
    assert run.manifest.steps.seen == 50
    assert run.missing() == {}
    types = {operation["type"] for graph in run.program["graphs"] for operation in graph["operations"]}
    assert "ResourceApplyAdam" in types


def test_keras_2_with_several_steps_in_each_call(tmp_path: Path) -> None:
    steps, calls = 20, 5
    run = profiled(SCRIPT, tmp_path / "out", "keras_2", "4")
    assert (run.code, run.manifest.agent_errors) == (0, ())
    window = run.manifest.window
    assert window is not None
    assert (window.source, window.steps, window.calls) == ("keras-fit", steps, calls)
    assert len(numbers(run)) == calls  # Keras' own: a second marker of ours would double them
    assert run.manifest.steps.seen == 64
    layers = {layer["name"]: layer for layer in run.program["layers"]}
    assert layers["dense"]["at"][0] == str(SCRIPT)
    assert run.program["run"]["policy"] == "float32"
