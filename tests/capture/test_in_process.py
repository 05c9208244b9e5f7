"""Recording in this very process, without TensorFlow: who may begin, what is left, and who samples."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.capture.running import environment, fake_tensorflow, own_lines, plain, profiled
from tfdoctor.recording import Manifest, Recording


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def run(script: Path, source: str) -> subprocess.CompletedProcess[str]:
    script.write_text("import tfdoctor\n" + source)
    return plain(script)


def manifest(path: Path) -> Manifest:
    found = Recording.open(path).manifest
    assert found is not None
    return found


def missing(path: Path) -> dict[str, str]:
    return {entry.what: entry.why for entry in manifest(path).missing}


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
        "with tfdoctor.record('out') as run:\n"
        "    print(run.path.name, run.recording, run)\n"
        "print(run.recording.root.name)\n",
    )
    assert done.stdout == "out None <tfdoctor: the block is still running>\nout\n"
    assert done.stderr.startswith("tfdoctor: no training step was seen, recorded the block in ")
    found = manifest(script.parent / "out")
    assert found.finished
    assert found.command == ("train.py:2",)
    assert found.python == sys.executable
    assert found.outcome.exit_code == 0
    assert set(missing(script.parent / "out")) == {"trace"}
    assert found.agent_errors == ()
    assert not (script.parent / "out" / "processes").exists()


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("raise ValueError('training broke with token=abc')", 1, "ValueError: training broke with token=***"),
        ("raise SystemExit(7)", 7, "SystemExit: 7"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt: "),
    ],
)
def test_what_a_block_raises_is_recorded_and_passed_on(script: Path, source: str, code: int, said: str) -> None:
    text = "{}\ntry:\n    with {}:\n        {}\nexcept BaseException as error:\n    print(repr(error))\n"
    alone = run(script, text.format("import contextlib", "contextlib.nullcontext()", source))
    done = run(script, text.format("", "tfdoctor.record('out')", source))
    assert done.stdout == alone.stdout
    assert (done.returncode, own_lines(done.stderr)) == (0, "")
    outcome = json.loads((script.parent / "out" / "tfdoctor.json").read_text())["outcome"]
    assert (outcome["exit_code"], outcome["error"]) == (code, said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("record(steps=0)", "The number of steps to trace must be 1 or more."),
        ("record(steps='20')", "steps must be a whole number, not '20'."),
        ("record(warmup=-1)", "The warm-up steps and the sampling period cannot be negative."),
        ("record(seconds=0)", "The time to trace must be longer than zero, and finite."),
        ("record('.').__enter__()", "is not empty: choose another folder, or remove it first."),
        (
            "record('train.py/x').__enter__()",
            "train.py/x cannot be written (Not a directory): choose another folder.",
        ),
        ("Recorder()", "Import Keras before you create a Recorder"),
        ("record(for_epochs=0)", "for_epochs must be a whole number of at least 1, not 0."),
        ("record(trace=False, seconds=2)", "A run without a trace has no time to trace"),
    ],
)
def test_an_argument_that_makes_no_sense_is_one_sentence_before_anything_starts(
    script: Path, call: str, said: str
) -> None:
    done = run(
        script, f"try:\n    tfdoctor.{call}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    )
    assert said in done.stdout
    assert done.stdout.startswith(("CaptureError ", "NotEmptyError ", "OutputError "))
    assert done.stderr == ""
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


def test_a_recording_inside_another_is_refused_and_the_outer_goes_on(script: Path) -> None:
    done = run(
        script,
        "with tfdoctor.record('outer'):\n"
        "    try:\n"
        "        with tfdoctor.record('inner'):\n            print('never')\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
        "with tfdoctor.record('after'):\n    pass\n",
    )
    assert done.stdout.startswith("CaptureError The recording ")
    assert done.stdout.endswith("outer is still running: end it before you start another.\n")
    assert not (script.parent / "inner").exists()
    assert manifest(script.parent / "outer").finished
    assert manifest(script.parent / "after").finished


def test_folders_that_are_not_named_never_meet(script: Path) -> None:
    done = run(script, "for _ in range(3):\n    with tfdoctor.record() as run:\n        pass\n")
    assert done.returncode == 0
    assert len(list((script.parent / "runs").glob("train*"))) == 3


def test_a_block_that_is_never_left_is_ended_with_the_process(script: Path) -> None:
    run(script, "run = tfdoctor.record('out').__enter__()\n")
    assert manifest(script.parent / "out").finished
    assert manifest(script.parent / "out").outcome.exit_code is None
    assert "did not finish" in missing(script.parent / "out")["end of the block"]


def test_a_fork_leaves_the_recording_to_its_parent(script: Path) -> None:
    done = run(
        script,
        "import os, sys\n"
        "with tfdoctor.record('out'):\n"
        "    if os.fork() == 0:\n        sys.exit(5)\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n",
    )
    assert done.stdout == "5\n"
    assert manifest(script.parent / "out").outcome.exit_code == 0


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


def beside(path: Path) -> list[psutil.Process]:
    """Return the processes that sample into a file."""
    return [process for process in psutil.process_iter(["cmdline"]) if str(path) in (process.info["cmdline"] or ())]


def waiting(script: Path) -> subprocess.Popen[str]:
    """Start a script that waits inside its block, and return once it is being sampled."""
    script.write_text(
        "import sys, time, tfdoctor\n"
        "with tfdoctor.record('out', sample_every_ms=20):\n"
        "    print('ready', flush=True)\n"
        "    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        time.sleep(0.3)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=script.parent,
        env=environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    until(lambda: lines(script) > 2)
    return process


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


def lines(script: Path) -> int:
    samples = script.parent / "out" / "samples.jsonl"
    return samples.read_text().count("\n") if samples.exists() else 0


def test_samples_are_taken_by_a_process_that_ctrl_c_does_not_reach(script: Path) -> None:
    process = waiting(script)
    samples = script.parent / "out" / "samples.jsonl"
    assert not {each.pid for each in beside(samples)} & {
        child.pid for child in psutil.Process(process.pid).children(recursive=True)
    }
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    host = manifest(script.parent / "out").samplers[0]
    assert (host.name, host.status) == ("host", "on")
    assert host.count == lines(script) > 2
    until(lambda: not beside(samples))


def test_the_process_that_samples_ends_with_its_run(script: Path) -> None:
    process = waiting(script)
    process.kill()
    process.communicate(timeout=30)
    until(lambda: not beside(script.parent / "out" / "samples.jsonl"))


def test_sampling_can_be_switched_off(script: Path) -> None:
    run(script, "with tfdoctor.record('out', sample_every_ms=0):\n    pass\n")
    assert manifest(script.parent / "out").samplers == ()
    assert not (script.parent / "out" / "samples.jsonl").exists()


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
    done = run(script, WORKING)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("tfdoctor: recorded the block without a trace in ")
    assert lines[1].startswith("tfdoctor: no training step was seen (ValueError: broken), recorded the block in ")
    for name, took, ending in (("first", 0.8, ("exit", "")), ("second", 0.3, ("exception", "ValueError"))):
        log, times = Recording.open(script.parent / name).run, manifest(script.parent / name).times
        assert log is not None
        assert times is not None
        assert log.end is not None
        assert took <= log.end.end < took + 0.5
        assert (log.end.why, log.end.error) == ending
        assert abs(log.process.started_monotonic_ns - times.started_ns) < 0.1e9
        assert times.ended_ns is not None
        assert abs((times.ended_ns - times.started_ns) / 1e9 - log.end.end) < 0.1
    assert manifest(script.parent / "first").missing == ()
    log = Recording.open(script.parent / "second").run
    assert log is not None
    assert log.end is not None
    assert log.end.at == (str(script), WORKING[: WORKING.index("raise")].count("\n") + 2)


TWICE = """
import tensorflow as tf
weight = tf.Variable(tf.ones([8, 8]))

@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x @ weight)
    weight.assign_sub(0.01 * tape.gradient(loss, weight))

for trace in (False, True):
    with tfdoctor.record(f"trace-{trace}", steps=5, trace=trace):
        for _ in range(60):
            train(tf.ones([8, 8]))
"""


@pytest.mark.tensorflow
def test_a_trace_after_a_block_without_one_has_its_graphs(script: Path) -> None:
    run(script, TWICE)
    without, with_trace = (Recording.open(script.parent / f"trace-{trace}").program for trace in (False, True))
    assert without is not None
    assert with_trace is not None
    assert without.graphs == ()
    assert with_trace.graphs
