"""What reads recordings has a process of its own: whatever ends that is one sentence and an exit code."""

from tests.kit import *

RUN = "import os, resource, signal, sys, time; from tfdoctor import own_process; own_process.enter(); {}"


def command(what: str) -> list[str]:
    return [sys.executable, "-c", RUN.format(what)]


@cases(
        ("sys.exit(3)", 3, ""),
        ("None", 0, ""),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 2, "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 2, "SIGKILL"),
        ("[resource.setrlimit(resource.RLIMIT_CPU, (1, 9)), [0 for _ in iter(int, 1)]]", 2, "takes longer"),
        ("os.kill(os.getpid(), signal.SIGINT)", 1, "KeyboardInterrupt"))  # fmt: skip
def test_its_end_is_that_of_the_command(what: str, code: int, said: str) -> None:
    done = subprocess.run(command(what), capture_output=True, text=True, timeout=60, check=False)
    assert said in done.stderr
    assert done.returncode in (code, -signal.SIGINT if code == 1 else code)
    assert ("Traceback" in done.stderr) == (code == 1)


EARLY = """\
import os, signal, time
from tfdoctor import own_process
fork = os.fork

def interrupted():
    child = fork()
    if child:
        print(child, flush=True)
        os.kill(os.getpid(), {number:d})
    return child

os.fork = interrupted
own_process.enter()
time.sleep(120)
"""
"""The signal comes before the command can do anything more."""

LATE = RUN.format("[print(os.getpid(), flush=True), time.sleep(120)]")
"""The child names itself, and waits."""


@each(signal.SIGTERM, signal.SIGHUP)
@pytest.mark.parametrize("source", [EARLY, LATE])
def test_a_signal_to_the_command_ends_both(number: signal.Signals, source: str) -> None:
    called = [sys.executable, "-c", source.format(number=number)]
    with subprocess.Popen(called, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        assert child != running.pid
        if source == LATE:
            running.send_signal(number)
        assert running.wait(timeout=30) == -number
    deadline = time.monotonic() + 30
    alive = f"/proc/{child}/cwd"  # none of a process that has ended, though nobody has asked how yet
    while os.path.exists(alive) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(alive)
