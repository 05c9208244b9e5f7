"""Variants that go wrong, and Ctrl-C, with real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.running import QUIET, environment
from tfdoctor.capture.plan import Kind
from tfdoctor.diagnosis.trials import TrainingState
from tfdoctor.trial import training
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import ORIGINAL, RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.trial_run import TrialRun

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("scripts") / "goes_wrong.py"
SHORT = Enough(compare_at=4, fewest=6, steps=6, seconds=1.0)


def run(folder: Path, variant: Variant) -> TrialRun:
    program = RecordedProgram((sys.executable, str(SCRIPT)), folder, Kind.SCRIPT, QUIET)
    with Runner.of(program, layer=False) as stage:
        return stage.run(variant, SHORT, 1)


def wrong(how: str) -> Variant:
    return Variant(how, environment={"GOES_WRONG": how}, exact=True)


def test_weights_that_become_infinite_are_told(tmp_path: Path) -> None:
    as_is, variant = run(tmp_path, ORIGINAL), run(tmp_path, wrong("infinite"))
    assert as_is.finite
    assert variant.finite is False
    compared = training.compare(wrong("infinite"), [as_is, variant], [as_is, as_is])
    assert compared.state is TrainingState.NOT_FINITE


@pytest.mark.parametrize(
    ("how", "why"),
    [("killed", "it was killed, as the kernel does where memory runs out"), ("crashes", "InvalidArgumentError")],
)
def test_a_run_that_fails_says_why(tmp_path: Path, how: str, why: str) -> None:
    found = run(tmp_path, wrong(how))
    assert found.exit_code != 0
    assert why in found.error


TRY = """
import sys
from pathlib import Path
from tests.e2e.test_try_failures import SCRIPT, wrong
from tfdoctor import cli
from tfdoctor.capture.plan import Kind
from tfdoctor.trial import trial
from tfdoctor.trial.program import RecordedProgram
from tfdoctor.trial.running import Runner

def conduct():
    program = RecordedProgram((sys.executable, str(SCRIPT)), Path.cwd(), Kind.SCRIPT)
    with Runner.of(program, layer=False) as stage:
        say = lambda text: print(text, flush=True)
        trial.conduct(stage, trial.Agenda([wrong("no")], lambda parts: parts[0], say=say))

cli.app = lambda **_: conduct()
cli.main()
"""


def test_ctrl_c_before_a_round_has_ended_is_one_sentence(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    folder, temporary = tmp_path / "project", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    variables = environment(PYTHONPATH=f"{root}{os.pathsep}{root / 'src'}", TMPDIR=str(temporary))
    child = subprocess.Popen(
        [sys.executable, "-c", TRY],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()  # a run begins
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert errors == "tfdoctor: Nothing was measured before the interrupt.\n"
    assert not list(folder.iterdir())
    assert not list(temporary.glob("tfdoctor*"))
    assert not processes_in(folder)


def processes_in(folder: Path) -> list[str]:
    """Return the commands of processes that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder:
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended meanwhile, or is another user's
            continue
    return found
