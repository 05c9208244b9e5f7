"""What goes wrong around a run leaves the run alone, and the recording says what it lacks."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from tests.capture.running import (
    SOURCES,
    Run,
    command,
    environment,
    fake_tensorflow,
    own_lines,
    plain,
    profiled,
    training,
)
from tfdoctor.recording import Recording

WAITING = """
import os, sys, time
import train
print("ready", flush=True)
train.main(4000)
"""


def started(script: Path, out: Path, words: list[str] | None = None, **plan: object) -> subprocess.Popen[str]:
    """Start a profiled script and wait until it says 'ready'."""
    process = subprocess.Popen(
        words or command(script, out, **{"sample_every_ms": 50, **plan}),
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


def child_of(process: subprocess.Popen[str]) -> int:
    """Return the script's process."""
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            status = path.read_text()
            words = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if f"\nPPid:\t{process.pid}\n" in status and b"train" in words and b"driver" not in words:
            return int(path.parent.name)
    raise AssertionError("the script is gone")


def open_window(out: Path) -> None:
    """Wait until the steps are being traced."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for state in out.glob("processes/*/agent.json"):
            if json.loads(state.read_text()).get("state") == "open":
                return
        time.sleep(0.05)
    raise AssertionError("no window was opened")


# The child


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_script_is_recorded_as_killed(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = started(script, tmp_path / "out")
    os.kill(child_of(process), number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert stderr.count("tfdoctor: ") == 1
    manifest = Recording.open(tmp_path / "out").manifest
    assert manifest is not None
    assert (manifest.finished, manifest.outcome.signal) == (True, number)


@pytest.mark.tensorflow
def test_a_script_killed_while_it_is_traced_says_so(tmp_path: Path) -> None:
    training(tmp_path)
    script = tmp_path / "train_long.py"
    script.write_text(WAITING.replace("4000", "10**9"))
    process = started(script, tmp_path / "out", steps=10**6)
    open_window(tmp_path / "out")
    os.kill(child_of(process), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 137
    assert "the script was ended by SIGKILL during tracing, so there is no trace" in stderr
    manifest = Recording.open(tmp_path / "out").manifest
    assert manifest is not None
    assert {"trace", "program"} <= {gap.what for gap in manifest.missing}


# tfdoctor itself


@pytest.mark.tensorflow
def test_the_script_goes_on_when_tfdoctor_is_killed(tmp_path: Path) -> None:
    training(tmp_path)
    script = tmp_path / "train_long.py"
    script.write_text(WAITING)
    process = started(script, tmp_path / "out")
    child = child_of(process)
    process.kill()
    stdout, _ = process.communicate(timeout=60)  # the script's output ends when it does
    assert stdout == "trained\n"
    assert not Path(f"/proc/{child}/cwd").exists()
    recording = Recording.open(tmp_path / "out")
    assert recording.manifest is not None
    assert not recording.manifest.finished
    assert recording.manifest.steps.seen >= 30
    assert recording.manifest.window is not None
    assert recording.manifest.window.steps == 20
    assert len(recording.traces) == 1
    assert recording.program is not None


# Where to write


@pytest.mark.parametrize("out", ["/proc/nowhere/out", "/dev/null/out", "there"])
def test_a_folder_that_cannot_be_taken_is_said_before_the_run(tmp_path: Path, out: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "precious").write_text("data")
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    run = profiled(script, Path(out), sample_every_ms=0)
    assert (run.code, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert "choose" in run.stderr
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["precious"]


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))  # what a full disk does to the trace
import train
train.main()
"""


@pytest.mark.tensorflow
def test_a_disk_that_fills_up_costs_the_trace_and_not_the_run(tmp_path: Path) -> None:
    training(tmp_path)
    script = tmp_path / "train_full.py"
    script.write_text(FULL)
    run = profiled(script, tmp_path / "out", env=environment(PYTHONDONTWRITEBYTECODE="1"))
    assert (run.code, run.stdout) == (0, "trained\n")
    assert run.stderr.count("tfdoctor: ") == 1
    assert "the trace could not be written" in run.missing()["trace"]
    assert "no steps traced (the trace could not be written" in own_line(run)
    assert run.manifest.steps.seen >= 30


def test_a_program_that_cannot_be_started_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    wrapper = tmp_path / "python"
    wrapper.write_text("#!/nowhere/sh\n")
    wrapper.chmod(0o755)
    run = profiled(script, tmp_path / "out", python=str(wrapper), sample_every_ms=0)
    assert (run.code, run.stdout) == (2, "")
    assert "could not be started" in run.stderr
    assert not (tmp_path / "out").exists()


# What the script lacks, or does


def test_a_python_without_tensorflow_is_named(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    script = tmp_path / "train.py"
    script.write_text("import tensorflow\n")
    python = str(tmp_path / "env" / "bin" / "python")
    run = profiled(script, tmp_path / "out", python=python, sample_every_ms=0)
    assert run.code == 1
    assert "ModuleNotFoundError: No module named 'tensorflow'" in own_lines(run.stderr)
    assert "_tfdoctor" not in run.stderr
    assert "name another interpreter with --python" in run.missing()["trace"]


def test_a_long_run_without_a_step_is_told_what_to_do(tmp_path: Path) -> None:
    fake_tensorflow(tmp_path)
    script = tmp_path / "train.py"
    script.write_text("import tensorflow, time\ntime.sleep(1)\n")
    run = profiled(script, tmp_path / "out", sample_every_ms=0, watch_s=0.5)
    assert run.code == 0
    why = run.missing()["trace"]
    seen = re.search(r"no training step was seen in (\d+) s", why)
    assert seen
    assert int(seen[1]) >= 1  # as long as the script took here
    assert "--for" in why
    assert own_line(run).startswith("tfdoctor: no training step was seen, recorded the run in ")


def own_line(run: Run) -> str:
    (line,) = (line for line in run.stderr.splitlines() if line.startswith("tfdoctor: "))
    return line


AWAY = """
import os, shutil, sys
os.chdir(sys.argv[1])
shutil.rmtree(sys.argv[1])
print(sys.stdin.read())
import train
if os.fork() == 0:
    os._exit(0)
os.wait()
train.main(20)
sys.stdout.flush()
os._exit(5)
"""


@pytest.mark.tensorflow
def test_a_script_may_leave_its_folder_fork_and_exit_hard(tmp_path: Path) -> None:
    training(tmp_path)
    (tmp_path / "gone").mkdir()
    script = tmp_path / "away.py"
    script.write_text(AWAY)
    run = profiled(script, tmp_path / "out", str(tmp_path / "gone"), stdin="typed")
    assert (run.code, run.stdout) == (5, f"typed\ntrained {tmp_path / 'gone'}\n")
    assert run.manifest.agent_errors == ()
    assert run.missing() == {}
    assert run.manifest.window is not None
    assert run.manifest.window.steps > 0


def test_two_gigabytes_of_output_pass_by(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os\nblock = bytes(1 << 20)\n"
        "print('ready', flush=True)\n"
        "for _ in range(2 << 10):\n    os.write(1, block)\n"
    )
    process = subprocess.Popen(
        command(script, tmp_path / "out", sample_every_ms=0),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    assert process.stdout is not None
    got, peak = 0, 0
    while block := os.read(process.stdout.fileno(), 1 << 20):
        got += len(block)
        status = Path(f"/proc/{process.pid}/status")
        lines = status.read_text().splitlines() if got % 97 == 0 and status.exists() else []
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
    assert got == (2 << 30) + len("ready\n")
    assert process.wait() == 0
    assert peak < 200_000  # kilobytes
    process.stdout.close()


@pytest.mark.parametrize("source", ["import tensorflow", "print('no tensorflow')"])
def test_warnings_as_errors_find_nothing_of_ours(tmp_path: Path, source: str) -> None:
    fake_tensorflow(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(f"{source}\n")
    env = environment(PYTHONWARNINGS="error", PYTHONDEVMODE="1")
    alone = plain(script, env=env)
    run = profiled(script, tmp_path / "out", sample_every_ms=0, env=env)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, alone.stdout, alone.stderr)


HANGS = """
import sys, time
from pathlib import Path
from tfdoctor.capture import Plan, profile
from tfdoctor.capture.sampler.host import HostSampler

HostSampler.read = lambda _self: time.sleep(3600)
sys.exit(profile(Plan(sys.argv[1], out=Path(sys.argv[2]), sample_every_ms=50)).exit_code)
"""


def test_a_sampler_that_hangs_does_not_hold_the_run(tmp_path: Path) -> None:
    """An NVML call may never return when a device has fallen off the bus."""
    script = tmp_path / "train.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(0.5)\nraise SystemExit(3)\n")
    process = started(script, tmp_path / "out", [sys.executable, "-c", HANGS, str(script), str(tmp_path / "out")])
    process.communicate(timeout=60)
    assert process.returncode == 3
    manifest = Recording.open(tmp_path / "out").manifest
    assert manifest is not None
    assert manifest.finished
    reasons = {each.name: each.reason for each in manifest.samplers}
    assert "hung" in reasons["host"]
    assert "hung" not in reasons["nvml"]
