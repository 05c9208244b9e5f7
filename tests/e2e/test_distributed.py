"""Several workers on this machine, with TensorFlow's own strategies."""

from tests.e2e.kit import *
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.rules import all_rules

pytestmark = pytest.mark.tensorflow

SPLIT = re.compile(rb"CollectiveExecutor::CompleteParams(?!Async)")
"""An activity that starts in one thread and ends in another: TensorFlow crashes when it matches the two."""

SCRIPT = SCRIPTS / "distributed.py"

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


def trained(recording: Recording) -> Path:
    """Return the trace of 20 steps."""
    (trace,) = recording.traces
    assert sum(mark.name == "train" for mark in marks(trace)) == 20
    return trace


def test_mirrored_workers_are_one_recording_of_two(mirrored: Path) -> None:
    workers = [Recording.open(mirrored / "workers" / name) for name in ("worker-0", "worker-1")]
    for recording in workers:
        manifest = recording.manifest
        assert manifest is not None
        assert manifest.window is not None
        told = (manifest.agent_errors, manifest.steps.source, manifest.steps.seen, manifest.window.steps)
        assert told == ((), "tf-data-loop", 40, 20)
        assert not SPLIT.search(trained(recording).read_bytes())
    assert len(list(mirrored.glob("plugins/profile/*/*.xplane.pb"))) == 2
    assert workers[0].traces != workers[1].traces


def test_the_worker_with_a_planted_delay_is_named(mirrored: Path) -> None:
    found = diagnose(Recording.open(mirrored), all_rules(), "job", ask_xprof=False)
    assert found.hosts is not None
    assert [row.name for row in found.hosts.rows] == ["worker-0", "worker-1"]
    told = (found.hosts.straggler, found.hosts.shown, found.hosts.stage, found.hosts.matched)
    assert told == (f"worker-{SLOW}", f"worker-{SLOW}", "input", 20)
    assert "share its clock" in found.hosts.skew
    waits = [row.breakdown_ms["input"] > row.breakdown_ms["collective"] for row in found.hosts.rows]
    assert waits == [number == SLOW for number in range(2)]


def test_a_coordinators_steps_are_those_it_schedules(tmp_path: Path) -> None:
    run = profiled(SCRIPT, tmp_path / "out", "parameter_server")
    assert (run.code, run.stdout) == (0, "joined\n")
    steps = run.manifest.steps
    assert (run.manifest.agent_errors, steps.source, steps.seen) == ((), "repeated-call", 40)
    trained(run.recording)
