"""Runs of a trial with real processes: what a killed trial has left, and which of several processes is timed."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.trial.test_times import loop
from tfdoctor.capture.plan import Kind
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import ORIGINAL, RecordedProgram, Variant
from tfdoctor.trial.running import PREFIX, Runner, folder_prefix
from tfdoctor.trial.times import NoTimes, TrialTimes

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let trials have their folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def ended_process() -> int:
    """Return the number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_killed_trial_is_swept_by_the_next_one(temporary: Path) -> None:
    """Also its processes in sessions of their own; those of a trial that runs are left alone."""
    dead, living = (temporary / f"{folder_prefix(number)}x" for number in (ended_process(), os.getpid()))
    processes = []
    for folder in (dead, living):
        (folder / "run1" / "processes").mkdir(parents=True)
        plan = f"1 hidden {json.dumps({'processes': str(folder / 'run1' / 'processes')})}"
        environment = {**os.environ, "TFDOCTOR_PLAN": plan}
        environment.pop("PYTHONPATH", None)
        processes.append(subprocess.Popen(SLEEP, env=environment, start_new_session=True))
    program = RecordedProgram((sys.executable, "-c", ""), temporary, Kind.SCRIPT)
    try:
        with Runner.of(program, layer=False):
            assert processes[0].wait(10) < 0
            assert processes[1].poll() is None
        assert not dead.exists()
        assert living.exists()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_trial_of_another_container_is_left_alone(temporary: Path) -> None:
    """Trap: its process has a number there, and none here."""
    others = [temporary / f"{PREFIX}{ended_process()}-{where}x" for where in ("0123456789ab-", "")]
    for folder in others:
        (folder / "run1").mkdir(parents=True)
    with Runner.of(RecordedProgram(("true",), temporary, Kind.SCRIPT), layer=False) as stage:
        assert stage.folder.name.startswith(folder_prefix(os.getpid()))
        assert all(folder.exists() for folder in others)


TWO_PROCESSES = """
import json, os, sys
plan = json.loads(os.environ["TFDOCTOR_PLAN"].split(" ", 2)[2])
for name, text in zip(("a", "b"), sys.argv[1:]):
    os.mkdir(os.path.join(plan["processes"], name))
    open(os.path.join(plan["processes"], name, "timing.json"), "w").write(text)
"""


def test_of_two_processes_the_one_that_trains_longest_is_timed(temporary: Path) -> None:
    """Their folders have the numbers of processes, whose order is chance."""
    texts = [
        json.dumps({"loops": [loop([step] * 200)], "finite": True, "ended_by": "", "enough": True})
        for step in (1.0, 5.0)
    ]
    program = RecordedProgram((sys.executable, "-S", "-c", TWO_PROCESSES, *texts), temporary, Kind.COMMAND)
    with Runner.of(program, layer=False) as stage:
        run = stage.run(ORIGINAL, Enough(), 0)
    assert isinstance(run.times, TrialTimes), run
    assert run.times.step_ms == pytest.approx(5.0)


def test_a_loop_of_few_steps_is_said_so(temporary: Path) -> None:
    text = json.dumps({"loops": [loop([1.0] * 11)], "finite": True, "ended_by": "", "enough": True})
    program = RecordedProgram((sys.executable, "-S", "-c", TWO_PROCESSES, text), temporary, Kind.COMMAND)
    with Runner.of(program, layer=False) as stage:
        run = stage.run(ORIGINAL, Enough(), 0)
    assert isinstance(run.times, NoTimes)
    assert run.times.why.startswith("its longest loop has 12 steps, and a figure needs 36")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("HF_TOKEN", "mine-own", "bad: ***"), ("USE_AUTH", "1", "bad: 1"), ("PLAIN", "text", "bad: text")],
)
def test_the_error_of_a_run_shows_no_credential(temporary: Path, name: str, value: str, shown: str) -> None:
    """The run itself gets the value."""
    script = f"import os, sys; sys.exit('bad: ' + os.environ['{name}'])"
    program = RecordedProgram((sys.executable, "-S", "-c", script), temporary, Kind.COMMAND)
    with Runner.of(program, layer=False) as stage:
        run = stage.run(Variant("a", environment={name: value}), Enough(), 0)
    assert isinstance(run.times, NoTimes)
    assert run.error == run.times.why == shown
