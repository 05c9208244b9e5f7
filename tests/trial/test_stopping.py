"""Ctrl-Z stops the runs of a trial too, and the time in which they were stopped is none of theirs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.capture.running import SOURCES, environment

PROGRAM = "import time; print('ready', flush=True); [time.sleep(0.01) for _ in range(40)]; print('done')"

TURNS = f"""
import subprocess, sys
from tfdoctor.trial.turns import TurningRun, take_turns
words = ["sh", "-c", '"$0" -c "$1"; exit 3', sys.executable, {PROGRAM!r}]
run = TurningRun(lambda: subprocess.Popen(words, start_new_session=True), 1.5)
take_turns([run])
print(run.code, run.seconds < 1.5, len(run.turns) > 1)
"""


def test_runs_stop_with_tfdoctor(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", TURNS],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(SOURCES), PYTHONUNBUFFERED="1"),
        process_group=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    time.sleep(1.6)  # longer than the run may compute
    os.killpg(process.pid, signal.SIGCONT)
    shown, _ = process.communicate(timeout=30)
    assert shown == "done\n3 True True\n"
