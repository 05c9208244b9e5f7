"""Several workers on this machine, with TensorFlow's own strategies."""

import re
import sys
from pathlib import Path

import pytest

from tests.capture.running import profiled
from tests.capture.spans import marks
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules

pytestmark = pytest.mark.tensorflow

SPLIT = re.compile(rb"CollectiveExecutor::CompleteParams(?!Async)")
"""An activity that starts in one thread and ends in another: TensorFlow crashes when it matches the two."""

SCRIPT = Path(__file__).with_name("scripts") / "distributed.py"

SLOW = 1
"""The worker that waits for its input."""


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recording of two mirrored workers."""
    for attempt in range(3):  # a port that was free may be taken before a worker binds it
        out = tmp_path_factory.mktemp("mirrored") / f"out{attempt}"
        words = (str(SCRIPT), "mirrored", str(SLOW))
        run = profiled(Path(sys.executable), out, *words, kind="command")
        if run.code == 0:
            break
    assert run.code == 0, run.stderr
    return out


def test_mirrored_workers_are_one_recording_of_two(mirrored: Path) -> None:
    workers = [Recording.open(mirrored / "workers" / name) for name in ("worker-0", "worker-1")]
    for recording in workers:
        manifest = recording.manifest
        assert manifest is not None
        assert manifest.agent_errors == ()
        assert (manifest.steps.source, manifest.steps.seen) == ("tf-data-loop", 40)
        assert manifest.window is not None
        assert manifest.window.steps == 20
        (trace,) = recording.traces
        assert sum(mark.name == "train" for mark in marks(trace)) == 20
        assert not SPLIT.search(trace.read_bytes())
    assert len(list(mirrored.glob("plugins/profile/*/*.xplane.pb"))) == 2
    assert workers[0].traces != workers[1].traces


def test_the_worker_with_a_planted_delay_is_named(mirrored: Path) -> None:
    found = diagnose(Recording.open(mirrored), all_rules(), "job", ask_xprof=False)
    assert found.hosts is not None
    assert [row.name for row in found.hosts.rows] == ["worker-0", "worker-1"]
    assert (found.hosts.straggler, found.hosts.stage) == (f"worker-{SLOW}", "input")
    assert found.hosts.shown == f"worker-{SLOW}"
    assert found.hosts.matched == 20
    assert "share its clock" in found.hosts.skew
    slow_row, fast_row = found.hosts.rows[SLOW], found.hosts.rows[1 - SLOW]
    assert slow_row.breakdown_ms["input"] > slow_row.breakdown_ms["collective"]
    assert fast_row.breakdown_ms["collective"] > fast_row.breakdown_ms["input"]


def test_a_coordinators_steps_are_those_it_schedules(tmp_path: Path) -> None:
    run = profiled(SCRIPT, tmp_path / "out", "parameter_server")
    assert (run.code, run.stdout) == (0, "joined\n")
    assert run.manifest.agent_errors == ()
    assert run.manifest.steps.source == "repeated-call"
    assert run.manifest.steps.seen == 40
    (trace,) = run.recording.traces
    assert sum(mark.name == "train" for mark in marks(trace)) == 20
