"""Signals reach the script once, whoever sends them; tfdoctor outlives them, and stops with the script."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.running import SOURCES, command, environment
from tfdoctor.capture.signals import ENDING, FAULTS, WATCHED

COUNTS = """
import signal, sys, time
from collections import Counter
numbers, handled = [], [int(word) for word in sys.argv[1:]]
for number in handled:
    signal.signal(number, lambda number, frame: numbers.append(int(number)))
print("ready", flush=True)
while signal.SIGUSR2 not in numbers:
    time.sleep(0.01)
time.sleep(0.3)
print(sorted(Counter(numbers).items()), flush=True)
sys.exit(7)
"""

SENT = sorted(
    {signal.SIGUSR1, signal.SIGALRM, signal.SIGCONT, signal.SIGWINCH, signal.SIGXCPU, signal.SIGIO}
    | {signal.SIGABRT, signal.SIGTSTP, signal.SIGVTALRM, signal.SIGRTMIN, signal.SIGRTMAX}
    | set(ENDING)
)


def ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def started(
    folder: Path, source: str, *args: str, ready: bool = True, ignores_children: bool = False
) -> "subprocess.Popen[str]":
    """Start a profiled script in a group of its own, of a job of this session."""
    script = folder / "train.py"
    script.write_text(source)
    process = subprocess.Popen(
        command(script, folder / "out", *args, sample_every_ms=0),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=environment(),
        process_group=0,
        preexec_fn=ignore_children if ignores_children else None,  # noqa: PLW1509 - no thread runs
    )
    assert process.stdout is not None
    assert not ready or process.stdout.readline() == "ready\n"
    return process


def ended(process: "subprocess.Popen[str]") -> tuple[str, int]:
    shown, _ = process.communicate(timeout=30)
    return shown, process.returncode


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to tfdoctor alone", "to all"])
def test_every_signal_arrives_once(tmp_path: Path, send: Callable[[int, int], None]) -> None:
    """Also one that would stop a script without a handler: tfdoctor does not stop alone."""
    process = started(tmp_path, COUNTS, *(str(int(number)) for number in (*SENT, signal.SIGUSR2)))
    for number in (*SENT, signal.SIGUSR2):
        send(process.pid, number)
        time.sleep(0.05)
    expected = sorted((int(number), 1) for number in (*SENT, signal.SIGUSR2))
    assert ended(process) == (f"{expected}\n", 7)


def test_a_signal_to_all_and_one_to_tfdoctor_are_two(tmp_path: Path) -> None:
    process = started(tmp_path, COUNTS, "10", "12")
    for send in (os.killpg, os.kill, os.killpg):
        send(process.pid, signal.SIGUSR1)
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGUSR2)
    assert ended(process) == ("[(10, 3), (12, 1)]\n", 7)


def test_what_can_be_caught_is_watched() -> None:
    for number in WATCHED:
        signal.signal(number, signal.getsignal(number))
    left = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU}
    assert signal.valid_signals() - WATCHED == {*FAULTS, *left}


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGQUIT, signal.SIGRTMIN])
def test_a_script_that_dies_of_a_signal_gives_the_code_of_a_shell(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    os.killpg(process.pid, number)
    assert ended(process)[1] == 128 + number


def test_ctrl_z_stops_the_job_and_fg_continues_it(tmp_path: Path) -> None:
    process = started(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(0.5)\nprint('done')\n")
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)  # as a shell waits
    assert os.WIFSTOPPED(status)
    assert os.WSTOPSIG(status) == signal.SIGTSTP
    time.sleep(0.6)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGCONT)
    assert ended(process) == ("done\n", 0)


def test_a_script_that_stops_itself_does_not_stop_tfdoctor(tmp_path: Path) -> None:
    process = started(
        tmp_path,
        "import os, signal, subprocess, sys\nprint('ready', flush=True)\n"
        "wake = f'import os, time; time.sleep(0.3); os.kill({os.getpid()}, 18)'\n"
        "subprocess.Popen([sys.executable, '-c', wake])\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\nprint('done')\n",
    )
    assert ended(process) == ("done\n", 0)


def test_a_parent_that_ignores_its_children_hides_no_exit_code(tmp_path: Path) -> None:
    process = started(tmp_path, "raise SystemExit(7)", ready=False, ignores_children=True)
    assert ended(process) == ("", 7)


def test_signals_for_a_script_do_not_end_a_report() -> None:
    """They reach tfdoctor after the script has ended; Ctrl-C and SIGTERM do end it."""
    code = (
        "import os, signal, sys\nfrom tfdoctor.capture.signals import ENDING, outlive\n"
        "outlive()\nos.kill(os.getpid(), signal.SIGUSR1)\n"
        "print([signal.getsignal(n) is signal.SIG_DFL for n in ENDING[1:]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(PYTHONPATH=str(SOURCES)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[True, True, True]\n"
