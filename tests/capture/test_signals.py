"""Signals reach the script once, whoever sends them; tfdoctor outlives them, and stops with the script."""

from subprocess import Popen

from tests.capture import running
from tests.capture.kit import *
from tests.capture.running import command, ended
from tfdoctor.capture.signals import ENDING, FAULTS, WATCHED

COUNTS = """
import signal, sys, time
from collections import Counter
told, numbers, handled = 0, [], [int(word) for word in sys.argv[1:]]
for number in handled:
    signal.signal(number, lambda number, frame: numbers.append(int(number)))
print("ready", flush=True)
while signal.SIGUSR2 not in (known := [*numbers]):
    if len(known) > told:
        told = len(known)
        print(told, flush=True)
    time.sleep(0.01)
time.sleep(0.3)
print(sorted(Counter(numbers).items()), flush=True)
sys.exit(7)
"""

READY = "print('ready', flush=True)\n"
NAMES = "USR1 ALRM CONT WINCH XCPU IO ABRT TSTP VTALRM RTMIN RTMAX"
SENT = sorted({*(signal.Signals[f"SIG{name}"] for name in NAMES.split()), *ENDING})


def started(folder: Path, source: str, *args: str, **options: Any) -> Popen[str]:
    """Start a profiled script in a group of its own, of a job of this session."""
    script = folder / "train.py"
    script.write_text(source)
    words = command(script, folder / "out", *args, sample_every_ms=0)
    return running.started(words, folder, **{"start_new_session": False, "process_group": 0, **options})


def arrives(process: Popen[str], many: int) -> None:
    """Wait until the script has told of so many signals, and for one that comes twice."""
    while int(sure(process.stdout).readline()) < many:
        pass
    time.sleep(0.1)


def over(process: Popen[str]) -> tuple[str, int]:
    shown, _ = process.communicate(timeout=60)
    return shown, process.returncode


@each(os.kill, os.killpg)
def test_every_signal_arrives_once(send: Callable[[int, int], None], tmp_path: Path) -> None:
    """Also one that would stop a script without a handler: tfdoctor does not stop alone."""
    numbers = [*map(int, SENT), int(signal.SIGUSR2)]
    process = started(tmp_path, COUNTS, *map(str, numbers))
    for many, number in enumerate(numbers, 1):
        send(process.pid, number)
        if number != signal.SIGUSR2:
            arrives(process, many)
    assert over(process) == (f"{sorted((number, 1) for number in numbers)}\n", 7)


def test_a_signal_to_all_and_one_to_tfdoctor_are_two(tmp_path: Path) -> None:
    process = started(tmp_path, COUNTS, "10", "12")
    for many, send in enumerate((os.killpg, os.kill, os.killpg), 1):
        send(process.pid, signal.SIGUSR1)
        arrives(process, many)
    os.kill(process.pid, signal.SIGUSR2)
    assert over(process) == ("[(10, 3), (12, 1)]\n", 7)


def test_what_can_be_caught_is_watched() -> None:
    for number in WATCHED:
        signal.signal(number, signal.getsignal(number))
    left = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU}
    assert signal.valid_signals() - WATCHED == {*FAULTS, *left}


@cases(
    (os.kill, signal.SIGTERM), *((os.killpg, signal.Signals[f"SIG{name}"]) for name in ("USR1", "QUIT", "RTMIN"))
)
def test_a_script_that_dies_of_a_signal_gives_the_code_of_a_shell(
    send: Callable[[int, int], None], number: signal.Signals, tmp_path: Path
) -> None:
    process = started(tmp_path, f"{READY}import time\ntime.sleep(60)\n")
    send(process.pid, number)
    assert over(process)[1] == 128 + number


def test_ctrl_z_stops_the_job_and_fg_continues_it(tmp_path: Path) -> None:
    process = started(tmp_path, f"{READY}input()\nprint('done')\n", stdin=subprocess.PIPE)
    os.killpg(process.pid, signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)  # as a shell waits
    assert (os.WIFSTOPPED(status), os.WSTOPSIG(status)) == (True, signal.SIGTSTP)
    print(file=process.stdin, flush=True)
    time.sleep(0.3)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGCONT)
    assert over(process) == ("done\n", 0)


STOPS = '''
import os, signal, subprocess, sys
print("ready", flush=True)
wake = f"""import os, time
while open("/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "T": time.sleep(0.01)
time.sleep(0.3)
os.kill({os.getpid()}, 18)"""
subprocess.Popen([sys.executable, "-c", wake])
os.kill(os.getpid(), signal.SIGSTOP)
print("done")
'''


def test_a_script_that_stops_itself_does_not_stop_tfdoctor(tmp_path: Path) -> None:
    assert over(started(tmp_path, STOPS)) == ("done\n", 0)


def test_a_parent_that_ignores_its_children_hides_no_exit_code(tmp_path: Path) -> None:
    script, ignore = f"{READY}raise SystemExit(7)", partial(signal.signal, signal.SIGCHLD, signal.SIG_IGN)
    assert over(started(tmp_path, script, preexec_fn=ignore)) == ("", 7)


def test_signals_for_a_script_do_not_end_a_report() -> None:
    """They reach tfdoctor after the script has ended; Ctrl-C and SIGTERM do end it."""
    code = (
        "import os, signal, sys\nfrom tfdoctor.capture.signals import ENDING, outlive\n"
        "outlive()\nos.kill(os.getpid(), signal.SIGUSR1)\n"
        "print([signal.getsignal(n) is signal.SIG_DFL for n in ENDING[1:]])\n"
    )
    done = ended([sys.executable, "-c", code], Path(), env=environment(PYTHONPATH=str(SOURCES)))
    assert done.stdout == "[True, True, True]\n"
