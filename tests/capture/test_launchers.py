"""Whatever starts Python below tfdoctor, the hook is there and nobody sees it, on a terminal either."""

import pty

from tests.capture.kit import *
from tests.capture.running import command, ended, fake_tensorflow, own_lines, plain, profiled, shell, training
from tfdoctor.recording import Recording

SEEN = """
import os, sys
print(sys.path)
print(sorted(name for name in os.environ if "TFDOCTOR" in name or "PYTHON" in name))
print("extra", os.environ.get("EXTRA"), flush=True)
import tensorflow
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose child.py imports TensorFlow, after it has shown what it sees."""
    folder = tmp_path / "project"
    folder.mkdir()
    fake_tensorflow(folder)
    (folder / "child.py").write_text(SEEN)
    return folder


STARTS = """
import multiprocessing, os, runpy, subprocess, sys
if __name__ == "__main__":
    subprocess.run([sys.executable, "child.py"])
    os.system(sys.executable + " child.py")
    subprocess.run(f"cd . && {sys.executable} child.py", shell=True)
    child = multiprocessing.get_context("spawn").Process(target=runpy.run_path, args=("child.py",))
    child.start()
    child.join()
    subprocess.run([sys.executable, "-c", "import os, sys; os.system(sys.executable + ' child.py')"])
    os.execv(sys.executable, [sys.executable, "child.py"])
"""


def test_a_child_has_the_hook_and_does_not_see_it(folder: Path) -> None:
    script = folder / "train.py"
    script.write_text(STARTS)
    alone, run = plain(script), profiled(script, folder / "out", sample_every_ms=0)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, alone.stdout, alone.stderr)
    assert run.stdout.count("[]\nextra None\n") == 6
    found = [process for process in run.manifest.processes if process.why == "it ran no training step"]
    assert [(process.trained, bool(process.argv)) for process in found] == [(False, True)] * 6


def test_a_command_of_no_python_says_so(tmp_path: Path) -> None:
    run = shell(["sh", "-c", "echo hello; exit 4"], tmp_path / "out", tmp_path)
    assert (run.code, run.stdout) == (4, "hello\n")
    assert "no Python process of the command" in run.missing()["steps"]


def test_a_module_runs_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        "import os, sys\nprint(__name__, __package__, __file__, sys.argv, sys.path, sorted(os.environ))\n"
    )
    words = ["package.train", "--out", "x", "--", "-m"]
    alone = ended([sys.executable, "-m", *words], tmp_path)
    run = shell(words, tmp_path / "out", tmp_path, kind="module")
    assert (run.code, run.stdout) == (0, alone.stdout)
    assert "did not import TensorFlow" in run.missing()["trace"]


@pytest.mark.parametrize("python", ["python2.7", "python3.6", "python3.8", "python3.9", "python3.13"])
def test_any_python_may_come_by(tmp_path: Path, python: str) -> None:
    """A launcher's tools run in Pythons of their own: none of them may notice us."""
    found = shutil.which(python)
    if found is None or ended([found, "--version"], tmp_path).returncode:
        pytest.skip(f"there is no {python} here")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "sitecustomize.py").write_text("import sys\nsys.of_the_user = True\n")
    (tmp_path / "tool.py").write_text(
        "import sys\nsys.stdout.write('%s %s' % ([p for p in sys.path if 'capture' in p], sys.of_the_user))\n"
    )
    env = environment(PYTHONPATH=str(tmp_path / "extra"), PYTHONDONTWRITEBYTECODE="1")
    run = shell([found, "tool.py"], tmp_path / "out", tmp_path, env=env)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, "[] True", "")


# The terminal

BAR = """
import sys, time
assert all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
for i in range(30):
    sys.stdout.write(f"\\r{i + 1}/30 " + "=" * i)
    sys.stdout.flush()
    time.sleep(0.01)
print("\\nread", input())
"""

COUNTS = """
import signal, time
numbers = []
signal.signal(signal.SIGINT, lambda number, frame: numbers.append(number))
print("ready", flush=True)
while not numbers:
    time.sleep(0.01)
time.sleep(0.5)
print(numbers, flush=True)
"""

TITLES = re.compile(rb"\x1b\[2[23];2t|\x1b\]2;[^\x07]*\x07")


def on_terminal(words: list[str], folder: Path, typed: bytes = b"", after: bytes = b"") -> tuple[int, bytes]:
    """Run a command in a terminal of its own, and type once `after` is shown; return its code and all."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(words[0], words, environment(TERM="xterm-256color", PYTHONPATH=str(SOURCES)))
    shown = b""
    for data in _read(terminal, typed if not after else b""):
        shown += data
        if after and after in shown:
            os.write(terminal, typed)
            after = b""
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def _read(terminal: int, typed: bytes) -> Iterator[bytes]:
    os.write(terminal, typed)
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # all have closed it
            return
        if not data:
            return
        yield data


def recorded(script: Path, source: str, name: str = "out", **plan: object) -> list[str]:
    """Return the command that records a script."""
    script.write_text(source)
    return command(script, script.with_name(name), **{"sample_every_ms": 0, **plan})


@pytest.mark.parametrize("source", ["import sys\nsys.stdout.write('Epoch 3')\n", "print('Epoch 3')\n"])
def test_a_line_of_ours_begins_behind_an_unfinished_one(tmp_path: Path, source: str) -> None:
    """And no blank line is between them."""
    _, shown = on_terminal(recorded(tmp_path / "train.py", source), tmp_path)
    rows = screen(TITLES.sub(b"", shown).decode(), 80)
    assert rows[0].rstrip() == "Epoch 3"
    assert rows[1].startswith("tfdoctor: no training step was seen, recorded")


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
    words = recorded(tmp_path / "train.py", BAR)
    alone = on_terminal([sys.executable, str(tmp_path / "train.py")], tmp_path, b"typed\n")
    code, shown = on_terminal(words, tmp_path, b"typed\n")
    shown, _, sentence = TITLES.sub(b"", shown).partition(b" " * 80 + b"\rtfdoctor: ")
    assert (code, shown) == alone  # what comes next begins on a line of its own
    assert sentence.startswith(b"no training step was seen, recorded the run in ")


@pytest.mark.parametrize("quiet", [False, True])
def test_the_title_tells_how_far_it_is_and_quiet_nothing(tmp_path: Path, *, quiet: bool) -> None:
    fake_tensorflow(tmp_path)
    words = recorded(tmp_path / "train.py", "import tensorflow, time\ntime.sleep(1.2)\n", quiet=quiet)
    _, shown = on_terminal(words, tmp_path)
    title, pushed, popped = (
        text in shown for text in (b"\x1b]2;tfdoctor: warm-up\x07", b"\x1b[22;2t", b"\x1b[23;2t")
    )
    assert (title, pushed, popped) == ((False,) * 3 if quiet else (True,) * 3)
    assert quiet or shown.index(b"\x1b[22;2t") < shown.index(b"\x1b[23;2t")


def test_the_line_about_the_report_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    words = [sys.executable, "-m", "tfdoctor", "profile", "--out", "out", "--format", "json"]
    code, shown = on_terminal([*words, "train.py"], tmp_path)
    assert code == 0
    _, _, after = shown.partition(b"\r\x1b[Ktfdoctor: reading the trace")
    line, _, rest = after.partition(b"\r\x1b[K")
    assert b"\n" not in line
    assert b"report.json" in rest


def test_ctrl_c_of_a_terminal_arrives_once(tmp_path: Path) -> None:
    code, shown = on_terminal(recorded(tmp_path / "train.py", COUNTS), tmp_path, b"\x03", after=b"ready")
    assert b"[2]" in shown
    assert code == 0


# The background

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
time.sleep(2)
import tensorflow
time.sleep(0.6)
open("done", "w").close()
"""


def test_what_goes_on_in_the_background_is_told_and_read_once_it_has_ended(folder: Path) -> None:
    script = folder / "daemon.py"
    script.write_text(DAEMON)
    run = profiled(script, folder / "out", sample_every_ms=0)
    assert run.code == 0
    assert not (folder / "done").exists()
    (number,) = run.manifest.background
    assert f"goes on in the background (process {number})" in run.stderr
    until = time.monotonic() + 20
    while (not (folder / "done").exists() or Path(f"/proc/{number}").exists()) and time.monotonic() < until:
        time.sleep(0.05)
    assert (run.log.process.pid, run.log.end is not None) == (number, True)
    assert run.manifest.versions["tensorflow"] == "2.0"


def test_a_process_that_ends_soon_after_the_script_is_no_background(folder: Path) -> None:
    script = folder / "soon.py"
    script.write_text("import os, time\nif not os.fork():\n    time.sleep(0.4)\n")
    run = profiled(script, folder / "out", sample_every_ms=0)
    assert run.manifest.background == ()
    assert not (folder / "out" / "processes").exists()


# Real training

SPAWNS = """
import multiprocessing, train
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=train.main)
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
"""

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

RANKS = f"""
export WORLD_SIZE=3
RANK=0 {sys.executable} -O -X dev -W ignore train.py r0 &
RANK=1 {sys.executable} spawns.py & RANK=2 {sys.executable} forks.py &
wait
"""


@pytest.mark.tensorflow
def test_each_process_that_trains_is_recorded_however_it_was_started(tmp_path: Path) -> None:
    """By a shell script, by multiprocessing, and by a fork before TensorFlow is in use."""
    training(tmp_path)
    for name, text in (("run.sh", RANKS), ("spawns.py", SPAWNS), ("forks.py", FORKS)):
        (tmp_path / name).write_text(text)
    run = shell(["bash", "run.sh"], tmp_path / "out", tmp_path, sample_every_ms=100)
    assert (run.code, sorted(run.stdout.splitlines())) == (0, ["trained"] * 3 + ["trained r0"])
    assert "tfdoctor: 4 processes trained" in run.stderr
    workers = [path.name for path in run.recording.workers]
    assert workers[:3] == ["worker-0", "worker-1", "worker-2"]
    assert workers[3].startswith("worker-2-")
    traces = sorted(path.name for path in run.out.glob("plugins/profile/*/*"))
    assert traces == sorted(f"{name}.xplane.pb" for name in workers)
    assert not (run.out / "processes").exists()
    for name in workers:
        complete(Recording.open(run.out / "workers" / name))
    complete(run.recording)
    assert run.recording.traces[0].name == "worker-0.xplane.pb"
    assert any("4 workers were recorded and are compared" in note for note in run.recording.notes)


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
    assert [(run.communicate()[0], run.returncode) for run in runs] == [("trained r0\n", 0), ("trained r1\n", 0)]
    shared = tmp_path / "shared"
    assert len(list(shared.glob("plugins/profile/*"))) == 1
    assert len(list(shared.glob("plugins/profile/*/worker-*.xplane.pb"))) == 2
    for rank in range(2):
        worker = shared / "workers" / f"worker-{rank}"
        complete(Recording.open(worker))
        assert json.loads((worker / "report.json").read_text())["steps"]
