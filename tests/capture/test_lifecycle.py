"""How runs begin and end: whatever happens, the script does as it would alone, and what was recorded opens."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.running import SOURCES, environment, own_lines, plain
from tfdoctor.recording import Recording
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
    return tmp_path / "prepare.py"


def words(out: Path, script: Path, *options: str, args: tuple[str, ...] = ()) -> list[str]:
    own = ["-m", "tfdoctor", "profile", "--out", str(out), "--no-report", *options]
    return [sys.executable, *own, str(script), *args]


def run(script: Path, *options: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Profile a script from the command line."""
    return subprocess.run(
        words(script.parent / "out", script, *options, args=args),
        capture_output=True,
        text=True,
        cwd=script.parent,
        env=environment(PYTHONPATH=str(SOURCES)),
        timeout=120,
        check=False,
    )


def started(script: Path) -> subprocess.Popen[str]:
    """Start a profiled script in a group of its own, and wait until it says "ready"."""
    process = subprocess.Popen(
        words(script.parent / "out", script),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script.parent,
        env=environment(PYTHONPATH=str(SOURCES)),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def child(out: Path) -> int:
    """Return the process of the script, as the manifest has it while it runs, soon after its start."""
    until = time.monotonic() + 10
    while (times := json.loads((out / "tfdoctor.json").read_text())["times"]) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(times["pid"])


def account(out: Path) -> RunLog:
    log = Recording.open(out).run
    assert log is not None
    return log


def lasted(log: RunLog) -> float:
    """Return until when the account goes, in s."""
    return max([log.end.end if log.end else 0.0, *(one.end for one in log.buckets)])


def seen(log: RunLog) -> set[int]:
    """Return the lines of the script that samples showed."""
    return {stack.at[1] for stack in log.stacks.values() if stack.at}


def report(out: Path) -> dict[str, object]:
    """Return the report that `tfdoctor report` writes."""
    done = subprocess.run(
        [sys.executable, "-m", "tfdoctor", "report", str(out), "--format", "json"],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=str(SOURCES)),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads((out / "report.json").read_text())
    return found


def test_a_script_without_tensorflow_has_an_account(script: Path) -> None:
    script.write_text(f"{BUSY}work(1.5)\nprint('done')\n")
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "tfdoctor: no training step was seen, recorded the run in " in done.stderr
    log, manifest = account(script.parent / "out"), Recording.open(script.parent / "out").manifest
    assert manifest is not None
    assert manifest.times is not None
    assert manifest.times.ended_ns is not None
    took = (manifest.times.ended_ns - manifest.times.started_ns) / 1e9
    assert 1.5 <= lasted(log) <= took + 0.1
    assert log.process.pid == manifest.times.pid
    assert log.end is not None
    assert log.end.why == "exit"
    assert seen(log) & {5, 6, 7}
    assert not (script.parent / "out" / "processes").exists()
    assert report(script.parent / "out")


def test_no_trace_is_said_and_is_nothing_missing(script: Path) -> None:
    script.write_text(f"{BUSY}work(0.2)\n")
    done = run(script, "--no-trace")
    assert "tfdoctor: recorded the run without a trace in " in done.stderr
    manifest = Recording.open(script.parent / "out").manifest
    assert manifest is not None
    assert manifest.missing == ()
    assert manifest.plan is not None
    assert not manifest.plan.trace


@pytest.mark.parametrize(
    ("source", "code", "why", "line"),
    [
        ("sys.exit(3)", 3, "exit", None),
        ("raise ValueError('broken')", 1, "exception", 9),
        ("raise KeyboardInterrupt", 130, "interrupt", 9),
    ],
)
def test_an_end_by_the_script_is_its_own(script: Path, source: str, code: int, why: str, line: int | None) -> None:
    script.write_text(f"{BUSY}work(0.3)\nprint('begun', flush=True)\n{source}\n")
    alone, done = plain(script), run(script)
    assert (done.returncode, done.stdout) == (code, alone.stdout)
    assert done.stderr.startswith(alone.stderr)
    (said,) = (one for one in done.stderr.splitlines() if one.startswith("tfdoctor: "))
    assert said.startswith("tfdoctor: no training step was seen (the script ")
    log = account(script.parent / "out")
    assert log.end is not None
    assert (log.end.why, log.end.at and log.end.at[1]) == (why, line)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_script_leaves_its_account_up_to_its_last_second(script: Path, number: signal.Signals) -> None:
    script.write_text(f"{BUSY}work(0.5)\nprint('ready', flush=True)\nwork(60)\n")
    process = started(script)
    time.sleep(1.5)
    os.kill(child(script.parent / "out"), number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"the script was ended by {number.name}" in stderr
    log = account(script.parent / "out")
    assert log.end is None
    assert lasted(log) > 1.0


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_is_the_scripts(script: Path, times: int) -> None:
    script.write_text(
        f"{BUSY}try:\n    print('ready', flush=True)\n    work(60)\n"
        "finally:\n    print('cleaning', flush=True)\n    work(0.6)\n    print('clean', flush=True)\n"
    )
    process = started(script)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "cleaning\n"
    if times > 1:
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert stdout == ("clean\n" if times == 1 else "")
    assert process.returncode == 130
    assert "KeyboardInterrupt" in stderr
    log = account(script.parent / "out")
    assert log.end is not None
    assert log.end.why == "interrupt"
    assert not (script.parent / "out" / "processes").exists()


def test_a_killed_tfdoctor_leaves_the_script_and_its_account(script: Path) -> None:
    over = script.parent / "over"
    script.write_text(f"{BUSY}print('ready', flush=True)\nwork(2)\nopen({str(over)!r}, 'x').close()\n")
    process = started(script)
    pid, until = child(script.parent / "out"), time.monotonic() + 60
    process.kill()
    process.communicate(timeout=30)
    while Path(f"/proc/{pid}/cwd").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert over.exists()
    recording = Recording.open(script.parent / "out")
    assert recording.manifest is not None
    assert recording.manifest.times is not None
    assert not recording.manifest.finished
    assert recording.manifest.times.started_ns
    log = account(script.parent / "out")
    assert log.process.pid == pid
    assert lasted(log) > 2.0
    assert report(script.parent / "out")


FORKS = f"""{BUSY}
import multiprocessing
def part(n):
    work(0.4)
    return n
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(part, range(4))), flush=True)
    if os.fork() == 0:
        work(0.2)
        os._exit(0)
    os.wait()
    work(0.3)
    sys.exit(4)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_forks_leave_the_account_to_the_process_that_made_them(script: Path, method: str) -> None:
    script.write_text(FORKS)
    alone, done = plain(script, method), run(script, args=(method,))
    assert (done.returncode, done.stdout) == (4, "6\n") == (alone.returncode, alone.stdout)
    assert own_lines(done.stderr).startswith(alone.stderr)
    manifest, log = Recording.open(script.parent / "out").manifest, account(script.parent / "out")
    assert manifest is not None
    assert manifest.times is not None
    assert log.process.pid == manifest.times.pid
    assert manifest.agent_errors == ()
    assert log.end is not None
    assert log.end.why == "exit"


def test_a_script_that_replaces_itself_is_recorded_on(script: Path) -> None:
    script.write_text(
        f"{BUSY}if len(sys.argv) == 1:\n    work(0.2)\n"
        "    os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
        "work(1.5)\nprint('again', flush=True)\nsys.exit(6)\n"
    )
    done = run(script)
    assert (done.returncode, done.stdout) == (6, "again\n")
    manifest, log = Recording.open(script.parent / "out").manifest, account(script.parent / "out")
    assert manifest is not None
    assert len(manifest.processes) == 2
    assert lasted(log) > 1.0
    assert log.end is not None


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
work(1.5)
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)) == 4096:
            pass
    except OSError:
        pass
print("full", flush=True)
work(1.5)
sys.exit(int(sys.argv[2]))
"""


def test_a_full_disk_is_a_fault_of_the_recording_only(script: Path) -> None:
    code = 3
    script.write_text(FILLS)
    with small_disk(script.parent / "disk", 256) as disk:
        command = words(disk / "out", script, args=(str(disk / "blob"), str(code)))
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=str(SOURCES)),
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, "full\n")
        assert own_lines(done.stderr) == ""
        assert "cannot be written (No space left on device): make room" in done.stderr
        log = account(disk / "out")
        assert lasted(log) > 0.5


def test_a_disk_that_is_full_from_the_start_is_said_before_the_run(script: Path) -> None:
    script.write_text("print('ran')\n")
    with small_disk(script.parent / "disk", 4) as disk:
        (disk / "blob").write_bytes(bytes(4096))
        done = subprocess.run(
            words(disk / "out", script),
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=str(SOURCES)),
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "choose another folder" in done.stderr


LIMITED = f"""{BUSY}
import resource
work(1.2)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # from now on, every write of this process fails
work(1.2)
print("limited", flush=True)
"""


def test_a_process_that_can_write_no_more_keeps_what_it_wrote(script: Path) -> None:
    script.write_text(LIMITED)
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "limited\n")
    assert lasted(account(script.parent / "out")) > 0.5


EATS = f"""{BUSY}
work(1.0)
held = []
while True:
    held.append(bytearray(b"x" * (1 << 22)))
"""


def memory_cgroup(kilobytes: int) -> Path:
    """Return a new cgroup of version 1 or 2 with so much memory; skip where none can be made."""
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
        folder.mkdir()
        (folder / limit).write_text(str(kilobytes * 1024))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip("no cgroup can be made here")
    return folder


def test_the_kernels_oom_kill_is_told_from_others(script: Path) -> None:
    script.write_text(EATS)
    group = memory_cgroup(400_000)
    joined = f"echo $$ > {group}/cgroup.procs && exec "
    try:
        done = subprocess.run(
            ["sh", "-c", joined + " ".join(words(script.parent / "out", script))],
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=str(SOURCES)),
            timeout=120,
            check=False,
        )
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)
    manifest = Recording.open(script.parent / "out").manifest
    assert manifest is not None
    assert manifest.times is not None
    assert (done.returncode, manifest.times.oom_kills) == (137, 1)
    assert manifest.times.limit_bytes == 400_000 * 1024
    assert "killed by the kernel, which was out of memory" in done.stderr
    assert account(script.parent / "out").end is None
