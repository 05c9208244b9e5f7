"""Whatever starts Python below tfdoctor, the hook is there and nobody sees it."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.running import (
    SOURCES,
    command,
    environment,
    fake_tensorflow,
    own_lines,
    plain,
    profiled,
    shell,
    training,
)
from tfdoctor.recording import Recording

SEEN = """
import os, sys
print(sys.path)
print(sorted(name for name in os.environ if "TFDOCTOR" in name or "PYTHON" in name))
print("extra", os.environ.get("EXTRA"), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose child.py imports TensorFlow, after it has shown what it sees."""
    folder = tmp_path / "project"
    folder.mkdir()
    fake_tensorflow(folder)
    (folder / "child.py").write_text(SEEN + "import tensorflow\n")
    return folder


STARTS = {
    "subprocess": "subprocess.run([sys.executable, 'child.py'])",
    "system": "os.system(sys.executable + ' child.py')",
    "shell": "subprocess.run(f'cd . && {sys.executable} child.py', shell=True)",
    "execv": "os.execv(sys.executable, [sys.executable, 'child.py'])",
    "spawn": "multiprocessing.get_context('spawn').Process(target=runpy.run_path, args=('child.py',)).start()",
    "grandchild": (
        "subprocess.run([sys.executable, '-c', \"import os, sys; os.system(sys.executable + ' child.py')\"])"
    ),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_child_has_the_hook_and_does_not_see_it(folder: Path, tmp_path: Path, start: str) -> None:
    script = folder / "train.py"
    script.write_text(
        f"import multiprocessing, os, runpy, subprocess, sys\nif __name__ == '__main__':\n    {start}\n"
    )
    alone = plain(script)
    run = profiled(script, tmp_path / "out", sample_every_ms=0)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, alone.stdout, alone.stderr)
    assert run.stdout.endswith("[]\nextra None\n")
    found = [process for process in run.manifest.processes if process.why == "it ran no training step"]
    assert len(found) == 1
    assert found[0].trained is False
    assert found[0].argv


def test_a_command_passes_it_on_by_hand(folder: Path, tmp_path: Path) -> None:
    """Launchers start their workers with an environment that they have made from their own."""
    (folder / "launch.py").write_text(
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, 'child.py'], env=dict(os.environ, EXTRA='7'), check=True)\n"
    )
    run = shell([sys.executable, "-O", "-X", "dev", "launch.py"], tmp_path / "out", folder)
    assert run.code == 0
    assert "extra 7" in run.stdout
    assert "capture/site" not in run.stdout
    assert [process.why for process in run.manifest.processes] == [
        "it did not import TensorFlow",
        "it ran no training step",
    ]
    assert run.manifest.command[-1] == "launch.py"


def test_a_command_of_no_python_says_so(tmp_path: Path) -> None:
    run = shell(["sh", "-c", "echo hello; exit 4"], tmp_path / "out", tmp_path)
    assert (run.code, run.stdout) == (4, "hello\n")
    assert "no Python process of the command" in run.missing()["steps"]


def test_a_script_that_replaces_itself_keeps_both_stories(folder: Path, tmp_path: Path) -> None:
    """A process that calls execv keeps its number; it must not write over what it was before."""
    script = folder / "train.py"
    script.write_text(
        "import os, sys, tensorflow\n"
        "if len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
    )
    run = profiled(script, tmp_path / "out", sample_every_ms=0)
    pids = [process.pid for process in run.manifest.processes]
    assert len(pids) == 2
    assert pids[0] == pids[1]


def test_a_module_runs_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        "import os, sys\nprint(__name__, __package__, __file__, sys.argv, sys.path, sorted(os.environ))\n"
    )
    words = ["package.train", "--out", "x", "--", "-m"]
    alone = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, cwd=tmp_path, env=environment(), check=True
    )
    run = shell(words, tmp_path / "out", tmp_path, kind="module")
    assert (run.code, run.stdout) == (0, alone.stdout)
    assert "did not import TensorFlow" in run.missing()["trace"]


@pytest.mark.parametrize("python", ["python2.7", "python3.6", "python3.8", "python3.9", "python3.13"])
def test_any_python_may_come_by(tmp_path: Path, python: str) -> None:
    """A launcher's tools run in Pythons of their own: none of them may notice us."""
    found = shutil.which(python)
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no {python} here")
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "sitecustomize.py").write_text("import sys\nsys.of_the_user = True\n")
    (tmp_path / "tool.py").write_text(
        "import sys\nsys.stdout.write('%s %s' % ([p for p in sys.path if 'capture' in p], sys.of_the_user))\n"
    )
    env = environment(PATH=os.environ["PATH"], PYTHONPATH=str(extra), PYTHONDONTWRITEBYTECODE="1")
    run = shell([found, "tool.py"], tmp_path / "out", tmp_path, env=env)
    assert (run.code, run.stdout) == (0, "[] True")
    assert own_lines(run.stderr) == ""


def test_the_script_may_delete_the_folder_it_runs_in(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    script = tmp_path / "train.py"
    script.write_text("import os, shutil, sys\nprint(sys.stdin.read())\nshutil.rmtree(os.getcwd())\nimport keras\n")
    (tmp_path / "keras.py").write_text("import tensorflow\n")
    fake_tensorflow(tmp_path)
    done = subprocess.run(
        command(script, tmp_path / "out", sample_every_ms=0),
        input="typed",
        capture_output=True,
        text=True,
        cwd=here,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stdout, own_lines(done.stderr)) == (0, "typed\n", "")
    manifest = Recording.open(tmp_path / "out").manifest
    assert manifest is not None
    assert manifest.finished
    assert manifest.agent_errors == ()
    assert manifest.versions is not None
    assert manifest.versions["tensorflow"] == "2.0"


# The terminal

BAR = """
import sys, time
assert all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
for i in range(30):
    sys.stdout.write(f"\\r{i + 1}/30 " + "=" * i)
    sys.stdout.flush()
    time.sleep(0.03)
print("\\nread", input())
"""

TITLES = re.compile(rb"\x1b\[2[23];2t|\x1b\]2;[^\x07]*\x07")


def on_terminal(words: list[str], cwd: Path, typed: bytes = b"", **extra: str) -> tuple[int, bytes]:
    """Run a command in a terminal of its own; return how it ended and all that was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(words[0], words, environment(TERM="xterm-256color", **extra))
    os.write(terminal, typed)
    shown = b"".join(_read(terminal))
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # all have closed it
            return
        if not data:
            return
        yield data


def test_a_line_of_ours_begins_behind_an_unfinished_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nsys.stdout.write('Epoch 3')\n")
    words = command(script, tmp_path / "out", sample_every_ms=0)
    _, shown = on_terminal(words, tmp_path)
    rows = screen(TITLES.sub(b"", shown).decode(), 80)
    assert rows[0].rstrip() == "Epoch 3"
    assert rows[1].startswith("tfdoctor: no training step was seen, recorded")
    script.write_text("print('Epoch 3')\n")
    _, shown = on_terminal(command(script, tmp_path / "again", sample_every_ms=0), tmp_path)
    rows = screen(TITLES.sub(b"", shown).decode(), 80)
    assert (rows[0].rstrip(), rows[1][:10]) == ("Epoch 3", "tfdoctor: ")  # and no blank line


def screen(text: str, columns: int) -> list[str]:
    """Return the rows that a terminal shows: it wraps only when there is one more character."""
    rows, at = [""], 0
    for character in text:
        if character == "\n":
            rows.append("")
        elif character == "\r":
            at = 0
        else:
            if at == columns:
                rows.append("")
                at = 0
            rows[-1] = rows[-1][:at] + character + rows[-1][at + 1 :]
            at += 1
    return rows


def test_a_progress_bar_is_not_touched(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BAR)
    alone = on_terminal([sys.executable, str(script)], tmp_path, b"typed\n")
    code, shown = on_terminal(command(script, tmp_path / "out", sample_every_ms=0), tmp_path, b"typed\n")
    shown, _, sentence = TITLES.sub(b"", shown).partition(b" " * 80 + b"\rtfdoctor: ")
    assert (code, shown) == alone  # what comes next begins on a line of its own
    assert sentence.startswith(b"no training step was seen, recorded the run in ")


def test_the_title_tells_how_far_it_is_and_quiet_nothing(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    fake_tensorflow(tmp_path)
    script.write_text("import tensorflow, time\ntime.sleep(1.5)\n")
    _, shown = on_terminal(command(script, tmp_path / "out", sample_every_ms=0), tmp_path)
    assert b"\x1b]2;tfdoctor: warm-up\x07" in shown
    assert shown.index(b"\x1b[22;2t") < shown.index(b"\x1b[23;2t")
    _, shown = on_terminal(command(script, tmp_path / "quiet", sample_every_ms=0, quiet=True), tmp_path)
    assert b"\x1b" not in shown


def test_the_line_about_the_report_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    words = [sys.executable, "-m", "tfdoctor", "profile", "--out", "out", "--format", "json"]
    code, shown = on_terminal([*words, "train.py"], tmp_path, PYTHONPATH=str(SOURCES))
    assert code == 0
    _, _, after = shown.partition(b"\r\x1b[Ktfdoctor: reading the trace")
    line, _, rest = after.partition(b"\r\x1b[K")
    assert b"\n" not in line
    assert b"report.json" in rest


# Signals: each reaches the script exactly once

COUNTS = """
import signal, sys, time
numbers = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: numbers.append(number))
print("ready", flush=True)
while not numbers:
    time.sleep(0.01)
time.sleep(0.5)
print(numbers, flush=True)
"""


def test_ctrl_c_of_a_terminal_arrives_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(COUNTS.replace("ready", "ready to be interrupted"))
    pid, terminal = pty.fork()
    if pid == 0:
        words = command(script, tmp_path / "out", sample_every_ms=0)
        os.execve(words[0], words, environment(TERM="dumb"))
    shown = b""
    while b"interrupted" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    shown += b"".join(_read(terminal))
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"[2]" in shown
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_run_that_is_stopped_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(0.3)\nprint('done')\n")
    process = subprocess.Popen(
        command(script, tmp_path / "out", sample_every_ms=50),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(0.6)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGCONT)
    assert process.stdout.read() == "done\n"
    assert process.wait() == 0
    process.stdout.close()


# Real training

RANKS = f"""
for r in 0 1; do RANK=$r WORLD_SIZE=2 {sys.executable} -O -X dev -W ignore train.py r$r & done
wait
"""


@pytest.mark.tensorflow
def test_workers_of_a_shell_script_are_recorded_each(tmp_path: Path) -> None:
    training(tmp_path)
    (tmp_path / "run.sh").write_text(RANKS)
    out = tmp_path / "out"
    run = shell(["bash", "run.sh"], out, tmp_path, sample_every_ms=100)
    assert (run.code, sorted(run.stdout.splitlines())) == (0, ["trained r0", "trained r1"])
    assert "tfdoctor: 2 processes trained" in run.stderr
    assert sorted(path.name for path in out.glob("plugins/profile/*/*")) == [
        "worker-0.xplane.pb",
        "worker-1.xplane.pb",
    ]
    assert not (out / "processes").exists()
    for name in ("worker-0", "worker-1"):
        complete(Recording.open(out / "workers" / name))
    shown = Recording.open(out)
    complete(shown)
    assert shown.traces[0].name == "worker-0.xplane.pb"
    assert any("2 workers were recorded and are compared" in note for note in shown.notes)


def complete(recording: Recording) -> None:
    manifest = recording.manifest
    assert manifest is not None
    assert (manifest.finished, manifest.missing, manifest.agent_errors) == (True, (), ())
    assert manifest.window is not None
    assert manifest.window.steps == 20
    assert len(recording.traces) == 1
    assert recording.program is not None
    assert recording.samples


@pytest.mark.tensorflow
def test_a_process_of_multiprocessing_is_the_recording(tmp_path: Path) -> None:
    training(tmp_path)
    script = tmp_path / "launch.py"
    script.write_text(
        "import multiprocessing, train\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=train.main)\n"
        "    process.start()\n    process.join()\n    raise SystemExit(process.exitcode)\n"
    )
    run = profiled(script, tmp_path / "out", sample_every_ms=100)
    assert run.code == 0
    complete(run.recording)
    assert [process.trained for process in run.manifest.processes] == [True, False]


FORKS = """
import os, tensorflow, train
early = os.fork()
train.main()
if early:
    os.waitpid(early, 0)
    if os.fork() == 0:
        os._exit(0)
    os.wait()
"""


DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    sys.exit()
null = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(null, stream)
time.sleep(2.5)
import tensorflow
time.sleep(0.6)
open("done", "w").close()
"""


def test_what_goes_on_in_the_background_is_told_and_read_once_it_has_ended(folder: Path) -> None:
    script, out = folder / "daemon.py", folder / "out"
    script.write_text(DAEMON)
    run = profiled(script, out, sample_every_ms=0)
    assert run.code == 0
    assert not (folder / "done").exists()
    (number,) = run.manifest.background
    assert f"goes on in the background (process {number})" in run.stderr
    until = time.monotonic() + 20
    while not (folder / "done").exists() and time.monotonic() < until:
        time.sleep(0.05)
    while Path(f"/proc/{number}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    recorded = run.recording
    assert recorded.run is not None
    assert (recorded.run.process.pid, recorded.run.end is not None) == (number, True)
    assert recorded.manifest is not None
    assert recorded.manifest.versions["tensorflow"] == "2.0"


def test_a_process_that_ends_soon_after_the_script_is_no_background(folder: Path) -> None:
    script = folder / "soon.py"
    script.write_text("import os, time\nif not os.fork():\n    time.sleep(0.4)\n")
    run = profiled(script, folder / "out", sample_every_ms=0)
    assert run.manifest.background == ()
    assert not (folder / "out" / "processes").exists()


@pytest.mark.tensorflow
def test_a_fork_before_tensorflow_is_in_use_records_for_itself(tmp_path: Path) -> None:
    training(tmp_path)
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    run = profiled(script, tmp_path / "out", sample_every_ms=100)
    assert (run.code, run.stdout) == (0, "trained\n" * 2)
    assert len(run.manifest.workers or run.recording.workers) == 2
    for worker in run.recording.workers:
        complete(Recording.open(worker))


@pytest.mark.tensorflow
def test_the_default_report_is_the_chiefs(tmp_path: Path) -> None:
    """From the command line, with a report, by the rank in tfdoctor's own environment."""
    training(tmp_path)
    words = [sys.executable, "-m", "tfdoctor", "profile", "--out", "shared", "--format", "json"]
    runs = [
        subprocess.Popen(
            [*words, "-q", "-m", "train", f"r{rank}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(PYTHONPATH=str(SOURCES), RANK=str(rank), WORLD_SIZE="2"),
        )
        for rank in range(2)
    ]
    ends = [(run.communicate()[0], run.returncode) for run in runs]
    assert ends == [("trained r0\n", 0), ("trained r1\n", 0)]
    shared = tmp_path / "shared"
    assert len(list(shared.glob("plugins/profile/*"))) == 1
    assert len(list(shared.glob("plugins/profile/*/worker-*.xplane.pb"))) == 2
    for rank in range(2):
        worker = shared / "workers" / f"worker-{rank}"
        complete(Recording.open(worker))
        assert json.loads((worker / "report.json").read_text())["steps"]
