"""Real loops without `Model.fit` of Keras 3 and without a dataset, and profilers in the way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import Run, plain, profiled
from tests.capture.spans import marks

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("scripts") / "loops.py"

Profile = Callable[..., Run]


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    def run(mode: str, *args: str, **plan: Any) -> Run:
        done = profiled(SCRIPT, tmp_path / "out", mode, *args, **plan)
        assert done.code == 0
        assert done.manifest.agent_errors == ()
        return done

    return run


def numbers(run: Run) -> list[int]:
    """Return the numbers of the marked steps."""
    (trace,) = run.recording.traces
    found = marks(trace)
    assert found[-1].name == "tfdoctor_end"
    return [mark.stat("step_num") for mark in found if mark.name == "train"]


def test_repeated_calls(profile: Profile) -> None:
    run = profile("repeated")
    assert run.stdout == plain(SCRIPT, "repeated").stdout
    assert numbers(run) == list(range(10, 30))
    assert run.manifest.steps.source == "repeated-call"
    assert run.manifest.steps.seen == 50
    assert run.missing() == {}


def test_two_models_in_turn(profile: Profile) -> None:
    run = profile("gan")
    assert numbers(run) == list(range(10, 30))
    assert [candidate.steps for candidate in run.manifest.steps.candidates] == [40, 40, 40]
    assert "of 3 training loops" in run.manifest.steps.why


def test_a_loop_inside_a_function(profile: Profile) -> None:
    run = profile("in_graph")
    assert run.stdout == plain(SCRIPT, "in_graph").stdout
    assert numbers(run) == []
    assert run.manifest.steps.source == "graph-loop"
    assert run.manifest.window is not None
    assert run.manifest.window.at is not None
    assert run.manifest.window.at[0] == str(SCRIPT)
    assert run.program["graphs"]


def test_a_session(profile: Profile) -> None:
    run = profile("session")
    assert run.stdout == plain(SCRIPT, "session").stdout
    assert numbers(run) == list(range(10, 30))
    assert run.manifest.steps.source == "session-run"
    assert run.manifest.steps.seen == 50
    types = {
        operation["type"] for graph in run.program["graphs"] for operation in graph["operations"]
    }
    assert "ResourceApplyAdam" in types


def test_keras_2_with_several_steps_in_each_call(profile: Profile) -> None:
    steps, calls = 20, 5
    run = profile("keras_2", "4")
    assert run.stdout == plain(SCRIPT, "keras_2", "4").stdout
    window = run.manifest.window
    assert window is not None
    assert (window.source, window.steps, window.calls) == ("keras-fit", steps, calls)
    assert len(numbers(run)) == calls  # Keras' own: a second marker of ours would double them
    assert run.manifest.steps.seen == 64
    layers = {layer["name"]: layer for layer in run.program["layers"]}
    assert layers["dense"]["at"][0] == str(SCRIPT)
    assert run.program["run"]["policy"] == "float32"


def test_a_profiler_that_was_refused_is_tried_again(profile: Profile, tmp_path: Path) -> None:
    run = profile("refused", str(tmp_path))
    assert len(numbers(run)) == 20
    assert run.missing() == {}
    assert list(tmp_path.glob("theirs/plugins/profile/*/*.xplane.pb"))


def test_a_job_without_steps_is_traced_by_time(profile: Profile) -> None:
    run = profile("unseen", seconds=1.0)
    window = run.manifest.window
    assert window is not None
    assert (window.source, window.stopped_by, window.steps) == ("time", "time", 0)
    assert numbers(run) == []
    assert window.stopped_unix_ns is not None
    assert window.stopped_unix_ns - window.started_unix_ns > 0.9e9
