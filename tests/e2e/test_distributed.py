"""Several workers on this machine, with TensorFlow's own strategies."""

import re
import sys
from pathlib import Path

import pytest

from tests.capture.running import profiled
from tests.capture.spans import marks
from tfdoctor.recording import Recording

pytestmark = pytest.mark.tensorflow

SPLIT = re.compile(rb"CollectiveExecutor::CompleteParams(?!Async)")
"""An activity that starts in one thread and ends in another: TensorFlow crashes when it matches the two."""

SCRIPT = Path(__file__).with_name("scripts") / "distributed.py"


def test_mirrored_workers_are_one_recording_of_two(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = profiled(Path(sys.executable), out, str(SCRIPT), "mirrored", kind="command")
    assert run.code == 0
    workers = [Recording.open(out / "workers" / name) for name in ("worker-0", "worker-1")]
    for recording in workers:
        manifest = recording.manifest
        assert manifest is not None
        assert manifest.agent_errors == ()
        assert (manifest.steps.source, manifest.steps.seen) == ("tf-data-loop", 60)
        assert manifest.window is not None
        assert manifest.window.steps == 20
        (trace,) = recording.traces
        assert sum(mark.name == "train" for mark in marks(trace)) == 20
        assert not SPLIT.search(trace.read_bytes())
    assert len(list(out.glob("plugins/profile/*/*.xplane.pb"))) == 2
    assert workers[0].traces != workers[1].traces


def test_a_coordinators_steps_are_those_it_schedules(tmp_path: Path) -> None:
    run = profiled(SCRIPT, tmp_path / "out", "parameter_server")
    assert (run.code, run.stdout) == (0, "joined\n")
    assert run.manifest.agent_errors == ()
    assert run.manifest.steps.source == "repeated-call"
    assert run.manifest.steps.seen == 60
    (trace,) = run.recording.traces
    assert sum(mark.name == "train" for mark in marks(trace)) == 20
