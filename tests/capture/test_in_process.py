"""Recording in this very process, without TensorFlow: who may begin, what is left, and who samples."""

import psutil

from tests.capture.kit import *
from tests.capture.running import Run, fake_tensorflow, own_lines, plain, profiled, started


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def run(script: Path, source: str) -> subprocess.CompletedProcess[str]:
    script.write_text("import tfdoctor\n" + source)
    return plain(script)


def recorded(script: Path, name: str = "out") -> Run:
    return Run(0, "", "", script.with_name(name))


def test_importing_tfdoctor_costs_and_brings_nothing(script: Path) -> None:
    done = run(
        script,
        "import sys\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'keras', 'numpy', 'rich')))\n"
        "print([m for m in sys.modules if m.startswith('tfdoctor.')])\n"
        "print({'record', 'Recorder', 'Run'} <= set(dir(tfdoctor)))\n"
        "tfdoctor.record, tfdoctor.Recorder\n"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))\n"
        "try:\n    tfdoctor.nothing\nexcept AttributeError as error:\n    print(error)\n",
    )
    assert done.stdout.splitlines() == ["[]", "[]", "True", "[]", "module 'tfdoctor' has no attribute 'nothing'"]


def test_a_block_that_does_not_train_leaves_a_recording_that_says_so(script: Path) -> None:
    done = run(
        script,
        "with tfdoctor.record('out', sample_every_ms=0) as run:\n"
        "    print(run.path.name, run.recording, run)\n"
        "print(run.recording.root.name)\n",
    )
    assert done.stdout == "out None <tfdoctor: the block is still running>\nout\n"
    assert done.stderr.startswith("tfdoctor: no training step was seen, recorded the block in ")
    found = recorded(script)
    assert found.manifest.finished
    assert found.manifest.command == ("train.py:2",)
    assert found.manifest.python == sys.executable
    assert found.manifest.outcome.exit_code == 0
    assert found.manifest.samplers == ()
    assert set(found.missing()) == {"trace", "samples"}
    assert found.manifest.agent_errors == ()
    assert sorted(path.name for path in found.out.iterdir()) == ["run.jsonl", "tfdoctor.json"]


RAISED = (
    ("ValueError('training broke with token=abc')", 1, "ValueError: training broke with token=***"),
    ("SystemExit(7)", 7, "SystemExit: 7"),
    ("KeyboardInterrupt()", 130, "KeyboardInterrupt: "),
)
RAISE = """
for number, error in enumerate(({})):
    try:
        with tfdoctor.record(f"out{{number}}"):
            raise error
    except BaseException as raised:
        print(raised is error, repr(raised))
"""


def test_what_a_block_raises_is_recorded_and_passed_on(script: Path) -> None:
    done = run(script, RAISE.format(", ".join(error for error, _, _ in RAISED)))
    assert done.stdout == "".join(f"True {error}\n" for error, _, _ in RAISED)
    assert (done.returncode, own_lines(done.stderr)) == (0, "")
    for number, (_, code, said) in enumerate(RAISED):
        outcome = recorded(script, f"out{number}").manifest.outcome
        assert (outcome.exit_code, outcome.error) == (code, said)


SENSELESS = {
    "record(steps=0)": "CaptureError The number of steps to trace must be 1 or more.",
    "record(steps='20')": "CaptureError steps must be a whole number, not '20'.",
    "record(warmup=-1)": "CaptureError The warm-up steps and the sampling period cannot be negative.",
    "record(seconds=0)": "CaptureError The time to trace must be longer than zero, and finite.",
    "record('.').__enter__()": "NotEmptyError . is not empty: choose another folder, or remove it first.",
    "record('train.py/x').__enter__()": (
        "OutputError train.py/x cannot be written (Not a directory): choose another folder."
    ),
    "Recorder()": "CaptureError Import Keras before you create a Recorder",
    "record(for_epochs=0)": "CaptureError for_epochs must be a whole number of at least 1, not 0.",
    "record(trace=False, seconds=2)": "CaptureError A run without a trace has no time to trace",
}


def test_an_argument_that_makes_no_sense_is_one_sentence_before_anything_starts(script: Path) -> None:
    tries = "try:\n    tfdoctor.{}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    done = run(script, "".join(map(tries.format, SENSELESS)))
    for said, line in zip(SENSELESS.values(), done.stdout.splitlines(), strict=True):
        assert line.startswith(said)
    assert done.stderr == ""
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


def test_a_recording_inside_another_is_refused_and_the_outer_goes_on(script: Path) -> None:
    done = run(
        script,
        "with tfdoctor.record('outer'):\n"
        "    try:\n"
        "        with tfdoctor.record('inner'):\n            print('never')\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
        "for _ in range(2):\n    with tfdoctor.record():\n        pass\n"
        "run = tfdoctor.record('left').__enter__()\n",
    )
    assert done.stdout.startswith("CaptureError The recording ")
    assert done.stdout.endswith("outer is still running: end it before you start another.\n")
    assert not (script.parent / "inner").exists()
    assert recorded(script, "outer").manifest.finished
    assert len(list((script.parent / "runs").glob("train*"))) == 2  # folders that are not named never meet
    left = recorded(script, "left")  # a block that is never left is ended with the process
    assert left.manifest.finished
    assert left.manifest.outcome.exit_code is None
    assert "did not finish" in left.missing()["end of the block"]


def test_a_fork_leaves_the_recording_to_its_parent(script: Path) -> None:
    done = run(
        script,
        "import os, sys\n"
        "with tfdoctor.record('out'):\n"
        "    if os.fork() == 0:\n        sys.exit(5)\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n",
    )
    assert done.stdout == "5\n"
    assert recorded(script).manifest.outcome.exit_code == 0


def test_under_tfdoctor_profile_record_steps_aside(script: Path, tmp_path: Path) -> None:
    fake_tensorflow(script.parent)
    script.write_text(
        "import tfdoctor\n"
        "with tfdoctor.record('inner') as run:\n    import tensorflow; print('runs')\n"
        "print(run.path, run.recording, run)\n"
    )
    found = profiled(script, tmp_path / "outer", sample_every_ms=0)
    assert found.code == 0
    assert found.stdout.startswith("runs\nNone None <tfdoctor: `tfdoctor profile` already records this run")
    said = "tfdoctor: `tfdoctor profile` already records this run, so record() does nothing.\n"
    assert found.stderr.count(said) == 1
    assert not (script.parent / "inner").exists()


def test_what_is_not_there_cannot_be_reported_on(script: Path) -> None:
    done = run(
        script,
        "run = tfdoctor.record('out')\n"
        "for use in (lambda: run.diagnosis, run.report, run.show):\n"
        "    try:\n        use()\n    except tfdoctor.terms.errors.CaptureError as error:\n        print(error)\n"
        "print(run._repr_html_())\n"
        "with run:\n    pass\n"
        "try:\n    run.report(['pdf'])\nexcept tfdoctor.terms.errors.CaptureError as error:\n    print(error)\n",
    )
    *first, html, last = done.stdout.splitlines()
    assert first == ["There is no recording to report on: nothing has been recorded yet."] * 3
    assert html == "None"
    assert last.startswith("Unknown report format 'pdf': use gitlab, html, ")


# Sampling

WAITING = """
import sys, time
with tfdoctor.record("out", sample_every_ms=20):
    print("ready", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(0.3)
"""


def beside(path: Path) -> set[int]:
    """Return the processes that sample into a file."""
    found = psutil.process_iter(["cmdline"])
    return {process.pid for process in found if str(path) in (process.info["cmdline"] or ())}


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("kills", [False, True])
def test_samples_are_taken_by_a_process_that_ctrl_c_does_not_reach(script: Path, *, kills: bool) -> None:
    """It ends with its run, however that ends."""
    script.write_text("import tfdoctor" + WAITING)
    process, samples = (
        started([sys.executable, str(script)], script.parent),
        script.parent / "out" / "samples.jsonl",
    )

    def lines() -> int:
        return samples.read_text().count("\n") if samples.exists() else 0

    until(lambda: lines() > 2)
    assert beside(samples)
    assert not beside(samples) & {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    os.killpg(process.pid, signal.SIGKILL if kills else signal.SIGINT)
    process.communicate(timeout=30)
    if not kills:
        assert process.returncode == 0
        host = recorded(script).manifest.samplers[0]
        assert (host.name, host.status) == ("host", "on")
        assert host.count == lines() > 2
    until(lambda: not beside(samples))


WORKING = """
import time
def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
work(1.0)
with tfdoctor.record('first', trace=False):
    work(0.8)
try:
    with tfdoctor.record('second'):
        work(0.3)
        raise ValueError('broken')
except ValueError:
    pass
work(1.0)
"""


def test_a_block_has_an_account_of_its_own(script: Path) -> None:
    lines = run(script, WORKING).stderr.splitlines()
    assert lines[0].startswith("tfdoctor: recorded the block without a trace in ")
    assert lines[1].startswith("tfdoctor: no training step was seen (ValueError: broken), recorded the block in ")
    raised = WORKING[: WORKING.index("raise")].count("\n") + 2
    for name, took, ending in (
        ("first", 0.8, ("exit", "", None)),
        ("second", 0.3, ("exception", "ValueError", (str(script), raised))),
    ):
        log, times = recorded(script, name).log, recorded(script, name).times
        assert log.end is not None
        assert took <= log.end.end < took + 0.5
        assert (log.end.why, log.end.error, log.end.at) == ending
        assert abs(log.process.started_monotonic_ns - times.started_ns) < 0.1e9
        assert times.ended_ns is not None
        assert abs((times.ended_ns - times.started_ns) / 1e9 - log.end.end) < 0.1
    assert recorded(script, "first").manifest.missing == ()
