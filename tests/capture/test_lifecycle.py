"""How runs begin and end: whatever happens, the script does as it would alone, and what was recorded opens."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import (
    Run,
    cli,
    command,
    ended,
    environment,
    fake_tensorflow,
    own_lines,
    plain,
    profiled,
    started,
    training,
)
from tfdoctor.recording.run_log import RunLog

BUSY = """
import os, sys, time
def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder / "train.py"


def run(
    script: Path, source: str, *args: str, stdin: str = "", env: dict[str, str] | None = None, **plan: Any
) -> Run:
    script.write_text(source)
    return profiled(script, script.with_name("out"), *args, stdin=stdin, env=env, **{"sample_every_ms": 0, **plan})


def waiting(script: Path, source: str, **plan: Any) -> subprocess.Popen[str]:
    """Start a profiled script that says "ready"."""
    script.write_text(source)
    return started(command(script, script.with_name("out"), **{"sample_every_ms": 50, **plan}), script.parent)


def over(process: subprocess.Popen[str], script: Path) -> Run:
    stdout, stderr = process.communicate(timeout=60)
    return Run(process.returncode, stdout, stderr, script.with_name("out"))


def child(script: Path) -> int:
    """Return the process of the script, as the manifest has it while it runs, soon after its start."""
    until = time.monotonic() + 10
    while (times := json.loads((script.with_name("out") / "tfdoctor.json").read_text())["times"]) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(times["pid"])


def own_line(run: Run) -> str:
    (line,) = (line for line in run.stderr.splitlines() if line.startswith("tfdoctor: "))
    return line


def lasted(log: RunLog) -> float:
    """Return until when the account goes, in s."""
    return max([log.end.end if log.end else 0.0, *(one.end for one in log.buckets)])


def last(log: RunLog) -> tuple[str, int | None] | None:
    """Return why and in which line the account ends."""
    return (log.end.why, log.end.at[1] if log.end.at else None) if log.end else None


# The script's process is its own

EVERYTHING = """
import os, pickle, signal, subprocess, sys, threading

class Kept:
    value = 3

print([m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'keras', 'numpy')])
print(__name__, __file__, sys.argv, os.getcwd())
print(sys.path)
print(sorted((k, v) for k, v in os.environ.items()))
print(pickle.loads(pickle.dumps(Kept())).value, Kept.__module__)
print(sys.modules["__main__"].__dict__ is globals(), __spec__, __package__)
print([t.name for t in threading.enumerate()], signal.getsignal(signal.SIGINT))
print(sys.stdin.read())
child = "import os, sys; print(sys.path, 'TFDOCTOR_PLAN' in os.environ)"
child += "; print('_tfdoctor_agent' in sys.modules)"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
import profile, utils
print(profile.ANSWER, utils.ANSWER)
if "FROM_SITE" in os.environ:
    import sitecustomize
    print(sitecustomize.__file__)
print("to stderr", file=sys.stderr)
import tensorflow
sys.exit(3)
"""


@pytest.mark.parametrize(
    "users",
    [{}, {"PYTHONPATH": ""}, {"PYTHONPATH": "extra"}, {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}],
    ids=["plain", "empty path", "sitecustomize", "warnings"],
)
def test_all_that_a_script_can_see_is_the_same(script: Path, users: dict[str, str]) -> None:
    """An empty PYTHONPATH adds no folder, and the user's own sitecustomize runs."""
    extra = script.with_name("extra")
    extra.mkdir()
    (extra / "sitecustomize.py").write_text("import os; os.environ['FROM_SITE'] = 'yes'\n")
    for name in ("profile.py", "utils.py"):  # as of modules of others
        script.with_name(name).write_text("ANSWER = 42\n")
    fake_tensorflow(script.parent)
    given: dict[str, Any] = {"stdin": "typed\nlines", "env": environment(**users)}
    done = run(script, EVERYTHING, "--epochs", "2", "a b", **given)
    alone = plain(script, "--epochs", "2", "a b", **given)
    assert (done.code, done.stdout) == (alone.returncode, alone.stdout)
    assert own_lines(done.stderr) == alone.stderr
    assert done.manifest.outcome.exit_code == alone.returncode


def test_a_broken_sitecustomize_breaks_as_it_would(script: Path) -> None:
    extra = script.with_name("extra")
    extra.mkdir()
    (extra / "sitecustomize.py").write_text("raise ValueError('no')\n")
    users = environment(PYTHONPATH=str(extra))
    done, alone = run(script, "print('still runs')", env=users), plain(script, env=users)
    assert (done.code, done.stdout) == (0, alone.stdout)
    assert "Error in sitecustomize" in alone.stderr
    assert own_lines(done.stderr) == alone.stderr * 2  # tfdoctor's own interpreter says it as well


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("def f():\n    raise ValueError('training broke')\nf()\n", ("exception", 2)),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('worse') from e\n",
            ("exception", 4),
        ),
        ("import sys; sys.exit('a message')\n", ("exit", None)),
        ("import nowhere_to_be_found\n", ("exception", 1)),
        ("def broken(:\n", ("exception", None)),
        ("raise KeyboardInterrupt\n", ("interrupt", 1)),
        ("import os; os._exit(9)\n", ("exit", None)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n", None),
    ],
)
def test_every_end_is_passed_on(script: Path, source: str, end: tuple[str, int | None] | None) -> None:
    done, alone = run(script, source), plain(script)
    assert (done.stdout, own_lines(done.stderr)) == (alone.stdout, alone.stderr)
    assert done.code == (alone.returncode if alone.returncode >= 0 else 128 - alone.returncode)
    assert re.match(r"tfdoctor: no (training step was seen|steps traced) \(the script ", own_line(done))
    assert done.manifest.finished
    assert done.manifest.agent_errors == ()
    assert re.search("did not import|before it imported", done.missing()["trace"])
    assert (last(done.log) if done.recording.run else None) == end


# Killed, interrupted, replaced, forked


@pytest.mark.tensorflow
def test_a_script_killed_while_it_is_traced_says_so(script: Path) -> None:
    training(script.parent).rename(script.with_name("loop.py"))
    process = waiting(script, "import loop\nprint('ready', flush=True)\nloop.main(10**9)\n", steps=10**6)
    until = time.monotonic() + 60
    while not any('"open"' in state.read_text() for state in script.parent.glob("out/processes/*/agent.json")):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(child(script), signal.SIGKILL)
    done = over(process, script)
    assert done.code == 137
    assert "the script was ended by SIGKILL during tracing, so there is no trace" in done.stderr
    assert {"trace", "program"} <= set(done.missing())
    assert done.log.end is None
    assert lasted(done.log) > 0.5


def test_a_killed_script_leaves_its_account_up_to_its_last_second(script: Path) -> None:
    process = waiting(script, f"{BUSY}work(0.5)\nprint('ready', flush=True)\nwork(60)\n")
    time.sleep(1.5)
    os.kill(child(script), signal.SIGTERM)
    done = over(process, script)
    assert done.code == 128 + signal.SIGTERM
    assert "the script was ended by SIGTERM" in own_line(done)
    assert (done.manifest.finished, done.manifest.outcome.signal) == (True, signal.SIGTERM)
    assert done.log.end is None
    assert lasted(done.log) > 1.0


@pytest.mark.tensorflow
def test_a_training_goes_on_when_tfdoctor_is_killed_and_what_it_did_can_be_read(script: Path) -> None:
    training(script.parent).rename(script.with_name("loop.py"))
    process = waiting(script, "import loop\nprint('ready', flush=True)\nloop.main(400)\n")
    pid, until = child(script), time.monotonic() + 60
    process.kill()
    done = over(process, script)  # the script's output ends when it does
    assert done.stdout == "trained\n"
    while Path(f"/proc/{pid}/cwd").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not done.manifest.finished
    assert done.manifest.versions["python"] == sys.version.split()[0]
    assert any("unfinished" in note for note in done.recording.notes)
    assert done.manifest.steps.seen >= 30
    assert done.window.steps == 20
    assert len(done.recording.traces) == 1
    assert done.recording.program is not None
    assert done.log.process.pid == pid
    assert lasted(done.log) > 1.0
    told = cli("report", str(done.out), "--format", "json", folder=script.parent)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_is_the_scripts(script: Path, times: int) -> None:
    process = waiting(
        script,
        f"{BUSY}try:\n    print('ready', flush=True)\n    work(60)\n"
        "finally:\n    print('cleaning', flush=True)\n    work(0.6)\n    print('clean', flush=True)\n",
    )
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "cleaning\n"
    if times > 1:
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
    done = over(process, script)
    assert (done.code, done.stdout) == (130, "clean\n" if times == 1 else "")
    assert "KeyboardInterrupt" in done.stderr
    assert "tfdoctor: no training step was seen (the script was ended by SIGINT" in done.stderr
    assert (done.manifest.outcome.exit_code, done.manifest.outcome.signal) == (130, signal.SIGINT)
    assert done.log.end is not None
    assert done.log.end.why == "interrupt"
    assert not (done.out / "processes").exists()


FORKS = f"""{BUSY}
import multiprocessing
def part(n):
    work(0.2)
    return n
if __name__ == "__main__":
    if len(sys.argv) == 2:
        work(0.2)
        os.execv(sys.executable, [sys.executable, __file__, sys.argv[1], 'again'])
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(part, range(4))), flush=True)
    if os.fork() == 0:
        work(0.2)
        os._exit(0)
    os.wait()
    work(0.8)
    sys.exit(4)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_account_is_of_the_script_that_replaces_itself_and_not_of_its_forks(script: Path, method: str) -> None:
    """A process that calls execv keeps its number; it must not write over what it was before."""
    done = run(script, FORKS, method)
    assert (done.code, done.stdout) == (4, "6\n")
    assert own_line(done)
    assert done.log.process.pid == done.times.pid
    assert [process.pid for process in done.manifest.processes].count(done.log.process.pid) == 2
    assert done.manifest.agent_errors == ()
    assert last(done.log) == ("exit", None)
    assert lasted(done.log) > 1.0


AWAY = """
import os, shutil, sys
os.chdir(sys.argv[1])
shutil.rmtree(sys.argv[1])
print(sys.stdin.read())
import loop
if os.fork() == 0:
    os._exit(0)
os.wait()
loop.main(20)
sys.stdout.flush()
os._exit(5)
"""


@pytest.mark.tensorflow
def test_a_script_may_leave_its_folder_fork_and_exit_hard(script: Path) -> None:
    training(script.parent).rename(script.with_name("loop.py"))
    gone = script.with_name("gone")
    gone.mkdir()
    done = run(script, AWAY, str(gone), stdin="typed", sample_every_ms=200)
    assert (done.code, done.stdout) == (5, f"typed\ntrained {gone}\n")
    assert done.manifest.agent_errors == ()
    assert done.missing() == {}
    assert done.window.steps > 0


# What is said of a run


def test_a_script_without_tensorflow_has_an_account_and_a_report(script: Path) -> None:
    script.write_text(f"{BUSY}work(1.2)\nprint('done')\n")
    told = cli("profile", "--out", "out", "--no-trace", "--format", "json", "train.py", folder=script.parent)
    done = Run(told.returncode, told.stdout, told.stderr, script.with_name("out"))
    assert (done.code, done.stdout.partition("\n")[0]) == (0, "done")
    assert "tfdoctor: recorded the run without a trace in " in done.stderr
    times = done.times
    assert times.ended_ns is not None
    assert 1.2 <= lasted(done.log) <= (times.ended_ns - times.started_ns) / 1e9 + 0.1
    assert done.log.process.pid == times.pid
    assert last(done.log) == ("exit", None)
    assert {stack.at[1] for stack in done.log.stacks.values() if stack.at} & {5, 6, 7}
    assert done.manifest.missing == ()
    assert done.manifest.plan is not None
    assert not done.manifest.plan.trace
    assert (done.out / "report.json").exists()


def test_a_python_without_tensorflow_is_named(script: Path) -> None:
    venv.create(script.with_name("env"), with_pip=False)
    done = run(script, "import tensorflow\n", python=str(script.with_name("env") / "bin" / "python"))
    assert done.code == 1
    assert "ModuleNotFoundError: No module named 'tensorflow'" in own_lines(done.stderr)
    assert "_tfdoctor" not in done.stderr
    assert "name another interpreter with --python" in done.missing()["trace"]


@pytest.mark.parametrize(
    ("wrapper", "code", "said"),
    [
        ("#!/nowhere/sh\n", 2, "could not be started"),
        (f'#!/bin/sh\nexec {sys.executable} -I "$@"\n', 0, "no training step"),
    ],
    ids=["not started", "without the hook"],
)
def test_a_python_that_cannot_be_started_or_hooked_is_said(
    script: Path, wrapper: str, code: int, said: str
) -> None:
    python = script.with_name("python")
    python.write_text(wrapper)
    python.chmod(0o755)
    done = run(script, "print('ran')", python=str(python))
    assert (done.code, done.stdout) == (code, "" if code else "ran\n")
    if code:
        assert said in done.stderr
        assert not done.out.exists()
    else:
        assert "the recorder did not start" in done.missing()["steps"]


# Where it cannot be written


def test_a_recording_whose_folder_is_taken_away_is_lost_and_the_run_is_not(script: Path) -> None:
    """The folder of the recording turns into a file while the script runs."""
    source = (
        "import pathlib, shutil, sys\n"
        "out = pathlib.Path(sys.argv[1]); shutil.rmtree(out); out.write_text('mine now')\n"
        "print('done')\n"
    )
    done = run(script, source, str(script.with_name("out")))
    assert (done.code, done.stdout) == (2, "done\n")
    assert re.fullmatch(r"error: .*cannot be written.*\n", done.stderr)


FULL = """
import resource, sys, loop
import tensorflow
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))  # what a full disk does to the trace
loop.main()
"""


@pytest.mark.tensorflow
def test_a_process_that_can_write_no_more_loses_the_trace_and_not_the_run(script: Path) -> None:
    training(script.parent).rename(script.with_name("loop.py"))
    done = run(script, FULL, env=environment(PYTHONDONTWRITEBYTECODE="1"))
    assert (done.code, done.stdout) == (0, "trained\n")
    assert "the trace could not be written" in done.missing()["trace"]
    assert "no steps traced (the trace could not be written" in own_line(done)
    assert done.manifest.steps.seen >= 30
    assert lasted(done.log) > 0.5


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a file system that is soon full."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


FILLS = f"""{BUSY}
work(1.2)
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)) == 4096:
            pass
    except OSError:
        pass
print("full", flush=True)
work(1.2)
sys.exit(3)
"""


def test_a_full_disk_is_a_fault_of_the_recording_only(script: Path) -> None:
    script.write_text(FILLS)
    with small_disk(script.with_name("disk"), 256) as disk:
        words = ("--out", str(disk / "out"), "--no-report", "train.py", str(disk / "blob"))
        done = cli("profile", *words, folder=script.parent)
        assert (done.returncode, done.stdout) == (3, "full\n")
        assert "cannot be written (No space left on device): make room" in done.stderr
        assert lasted(Run(3, "", "", disk / "out").log) > 0.5


def test_a_disk_that_is_full_from_the_start_is_said_before_the_run(script: Path) -> None:
    script.write_text("print('ran')\n")
    with small_disk(script.with_name("disk"), 4) as disk:
        (disk / "blob").write_bytes(bytes(4096))
        done = profiled(script, disk / "out")
        assert (done.code, done.stdout) == (2, "")
        assert "choose another folder" in done.stderr


EATS = f"{BUSY}work(1.0)\nheld = []\nwhile True:\n    held.append(bytearray(b'x' * (1 << 22)))\n"


@contextlib.contextmanager
def memory_cgroup(kilobytes: int) -> Iterator[Path]:
    """Make a cgroup of version 1 or 2 with so much memory; skip where none can be made."""
    root = Path("/sys/fs/cgroup")
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((path for _, kinds, path in lines if "memory" in kinds.split(",")), None)
    unified = next((path for _, kinds, path in lines if not kinds), "/")
    base, limit = (
        (root / "memory" / own.strip("/"), "memory.limit_in_bytes")
        if own is not None
        else (root / unified.strip("/"), "memory.max")
    )
    folder = base / f"tfdoctor-test-{os.getpid()}"
    try:
        try:
            folder.mkdir()
            (folder / limit).write_text(str(kilobytes * 1024))
        except OSError:
            pytest.skip("no cgroup can be made here")
        yield folder
    finally:
        for _ in range(50 if folder.exists() else 0):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def test_the_kernels_oom_kill_is_told_from_others(script: Path) -> None:
    script.write_text(EATS)
    out = script.with_name("out")
    with memory_cgroup(400_000) as group:
        joined = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        told = ended(["sh", "-c", joined, "sh", *command(script, out)], script.parent)
    done = Run(told.returncode, told.stdout, told.stderr, out)
    times = done.times
    assert (done.code, times.oom_kills, times.limit_bytes) == (137, 1, 400_000 * 1024)
    assert "killed by the kernel, which was out of memory" in done.stderr
    assert done.log.end is None
