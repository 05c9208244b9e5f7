"""Whatever starts Python below tfdoctor, the hook is there and nobody sees it, on a terminal either."""

import pty

from tests.capture.kit import *
from tests.capture.running import *
from tfdoctor.recording import Recording


@pytest.fixture
def child(script: Path) -> Path:
    """A script in a folder whose child.py imports TensorFlow, after it has shown what it sees."""
    fake_tensorflow(script.parent)
    script.with_name("child.py").write_text(TEXT_OF["shows what it sees"])
    return script


def test_a_child_has_the_hook_and_does_not_see_it(child: Path) -> None:
    run, alone = ran(child, TEXT_OF["starts children"]), plain(child)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, alone.stdout, alone.stderr)
    assert run.stdout.count("[]\nextra None\n") == 6
    found = [process for process in run.manifest.processes if process.why == "it ran no training step"]
    assert [(process.trained, bool(process.argv)) for process in found] == [(False, True)] * 5  # and a worker


def test_a_command_of_no_python_says_so(tmp_path: Path) -> None:
    run = shell(["sh", "-c", "echo hello; exit 4"], tmp_path / "out", tmp_path)
    assert (run.code, run.stdout) == (4, "hello\n")
    assert "no Python process of the command" in run.missing()["steps"]


def test_a_module_runs_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    shows = "import os, sys\nprint(__name__, __package__, __file__, sys.argv, sys.path, sorted(os.environ))\n"
    (tmp_path / "package" / "train.py").write_text(shows)
    words = ["package.train", "--out", "x", "--", "-m"]
    alone = ended([sys.executable, "-m", *words], tmp_path)
    run = shell(words, tmp_path / "out", tmp_path, kind="module")
    assert (run.code, run.stdout) == (0, alone.stdout)
    assert "did not import TensorFlow" in run.missing()["trace"]


@each("python2.7", "python3.6", "python3.8", "python3.9", "python3.13")
def test_any_python_may_come_by(python: str, tmp_path: Path) -> None:
    """A launcher's tools run in Pythons of their own: none of them may notice us."""
    found = shutil.which(python)
    if found is None or ended([found, "--version"], tmp_path).returncode:
        pytest.skip(f"there is no {python} here")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "sitecustomize.py").write_text("import sys\nsys.of_the_user = True\n")
    shows = "'%s %s' % ([p for p in sys.path if 'capture' in p], sys.of_the_user)"
    (tmp_path / "tool.py").write_text(f"import sys\nsys.stdout.write({shows})\n")
    env = environment(PYTHONPATH=str(tmp_path / "extra"), PYTHONDONTWRITEBYTECODE="1")
    run = shell([found, "tool.py"], tmp_path / "out", tmp_path, env=env)
    assert (run.code, run.stdout, own_lines(run.stderr)) == (0, "[] True", "")


TITLES = re.compile(rb"\x1b\[2[23];2t|\x1b\]2;[^\x07]*\x07")


def on_terminal(words: list[str], folder: Path, typed: bytes = b"", after: bytes = b"") -> tuple[int, bytes]:
    """Run a command in a terminal of its own, and type once `after` is shown; return its code and all."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(words[0], words, environment(TERM="xterm-256color", PYTHONPATH=str(SOURCES)))
    shown, data = b"", b"\0"
    while data:
        if typed and after in shown:
            os.write(terminal, typed)
            typed = b""
        data = b""
        with contextlib.suppress(OSError):  # all have closed it
            data = os.read(terminal, 65536)
        shown += data
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def on_own_terminal(script: Path, source: str, typed: bytes = b"", after: bytes = b"", **plan: Any) -> Any:
    """Record a script in a terminal of its own."""
    script.write_text(source)
    words = command(script, script.with_name("out"), **{"sample_every_ms": 0, **plan})
    return on_terminal(words, script.parent, typed, after)


@each("import sys\nsys.stdout.write('Epoch 3')\n", "print('Epoch 3')\n")
def test_a_line_of_ours_begins_behind_an_unfinished_one(source: str, script: Path) -> None:
    """And no blank line is between them."""
    _, shown = on_own_terminal(script, source)
    rows = screen(TITLES.sub(b"", shown).decode(), 80)
    assert rows[0].rstrip() == "Epoch 3"
    assert rows[1].startswith("tfdoctor: no training step was seen, recorded")


def screen(text: str, columns: int) -> list[str]:
    """Return the rows that a terminal shows: it wraps only when there is one more character."""
    rows, at = [""], 0
    for character in text:
        if character == "\r":
            at = 0
        elif character == "\n" or at == columns:
            rows.append("")
            at = 0
        if character not in "\r\n":
            rows[-1] = rows[-1][:at] + character + rows[-1][at + 1 :]
            at += 1
    return rows


def test_a_progress_bar_is_not_touched(script: Path) -> None:
    code, shown = on_own_terminal(script, TEXT_OF["progress bar"], b"typed\n")
    shown, _, sentence = TITLES.sub(b"", shown).partition(b" " * 80 + b"\rtfdoctor: ")
    # What comes next begins on a line of its own.
    assert (code, shown) == on_terminal([sys.executable, str(script)], script.parent, b"typed\n")
    assert sentence.startswith(b"no training step was seen, recorded the run in ")


@each(*(False, True))
def test_the_title_tells_how_far_it_is_and_quiet_nothing(*, quiet: bool, script: Path) -> None:
    fake_tensorflow(script.parent)
    source = f"import select, sys, tensorflow, time\ntime.sleep({1.2 if quiet else 0})\n"
    source += "select.select([sys.stdin], [], [], 60)\n"  # until somebody types
    texts = [b"\x1b]2;tfdoctor: warm-up\x07", b"\x1b[22;2t", b"\x1b[23;2t"]
    _, shown = on_own_terminal(script, source, b"\n", after=b"" if quiet else texts[0], quiet=quiet)
    assert [text in shown for text in texts] == [not quiet] * 3
    assert quiet or shown.index(texts[1]) < shown.index(texts[2])


def test_the_line_about_the_report_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    words = [sys.executable, "-m", "tfdoctor", "profile", "--out", "out", "--format", "json"]
    code, shown = on_terminal([*words, "train.py"], tmp_path)
    _, _, after = shown.partition(b"\r\x1b[Ktfdoctor: reading the trace")
    line, _, rest = after.partition(b"\r\x1b[K")
    assert (code, b"\n" in line, b"report.json" in rest) == (0, False, True)


def test_ctrl_c_of_a_terminal_arrives_once(script: Path) -> None:
    code, shown = on_own_terminal(script, TEXT_OF["counts interrupts"], b"\x03", after=b"ready")
    assert (code, b"[2]" in shown) == (0, True)


def test_what_goes_on_in_the_background_is_told_and_read_once_it_has_ended(child: Path) -> None:
    run, done = ran(child, TEXT_OF["daemon"]), child.with_name("done")
    assert (run.code, done.exists()) == (0, False)
    (number,) = run.manifest.background
    assert f"goes on in the background (process {number})" in run.stderr
    child.with_name("go").touch()
    until(lambda: done.exists() and not Path(f"/proc/{number}").exists())
    assert (run.log.process.pid, run.log.end is not None) == (number, True)
    assert run.manifest.versions["tensorflow"] == "2.0"


def test_a_process_that_ends_soon_after_the_script_is_no_background(script: Path) -> None:
    source = "import os, time\nscript = os.getpid()\nif not os.fork():\n"
    run = ran(script, source + "    while os.getppid() == script: time.sleep(0.01)\n    time.sleep(0.1)\n")
    assert (run.manifest.background, (run.out / "processes").exists()) == ((), False)


@pytest.mark.tensorflow
def test_each_process_that_trains_is_recorded_where_a_program_forks(tmp_path: Path) -> None:
    """Below a shell script, and before TensorFlow is in use: two of them have a rank of their own.

    The program leaves its folder, which is no longer there, forks once more, and exits hard.
    """
    training(tmp_path)
    (tmp_path / "gone").mkdir()
    (tmp_path / "forks.py").write_text(TEXT_OF["forks that train"])
    (tmp_path / "run.sh").write_text(f"WORLD_SIZE=2 RANK=0 {sys.executable} forks.py $PWD/gone\n")
    run = shell(["bash", "run.sh"], tmp_path / "out", tmp_path, sample_every_ms=100)
    assert (run.code, run.stdout) == (5, f"trained {tmp_path / 'gone'}\n" * 3)
    assert "tfdoctor: 3 processes trained" in run.stderr
    workers = [path.name for path in run.recording.workers]
    assert (workers[:2], workers[2].partition("-1-")[0]) == (["worker-0", "worker-1"], "worker")
    traces = sorted(path.name for path in run.out.glob("plugins/profile/*/*"))
    assert traces == sorted(f"{name}.xplane.pb" for name in workers)
    assert not (run.out / "processes").exists()
    for name in workers:
        complete(Recording.open(run.out / "workers" / name))
    complete(run.recording)
    assert run.recording.traces[0].name == "worker-0.xplane.pb"
    assert any("3 workers were recorded and are compared" in note for note in run.recording.notes)


def complete(recording: Recording) -> None:
    manifest = sure(recording.manifest)
    assert (manifest.finished, manifest.missing, manifest.agent_errors) == (True, (), ())
    assert (sure(manifest.window).steps, len(recording.traces)) == (20, 1)
    assert recording.program is not None
    assert recording.samples


@pytest.mark.tensorflow
def test_the_default_report_is_the_chiefs(tmp_path: Path) -> None:
    """From the command line, with a report, by the rank in tfdoctor's own environment.

    One trains as a module, one in a process of multiprocessing below a Python with flags.
    """
    training(tmp_path)
    (tmp_path / "spawns.py").write_text(TEXT_OF["spawns"])
    words = [sys.executable, "-m", "tfdoctor", "profile", "--out", "shared", "--format", "json", "-q"]
    flags = ["--", sys.executable, "-O", "-X", "dev", "-W", "ignore", "spawns.py"]
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    env = environment(PYTHONPATH=str(SOURCES), WORLD_SIZE="2")
    runs = [
        subprocess.Popen([*words, *own, f"r{rank}"], env=env | {"RANK": str(rank)}, **given)
        for rank, own in enumerate((flags, ["-m", "train"]))
    ]
    assert [(run.communicate()[0], run.returncode) for run in runs] == [("trained r0\n", 0), ("trained r1\n", 0)]
    shared = tmp_path / "shared"
    assert [len(list(shared.glob(f"plugins/profile/{one}"))) for one in ("*", "*/worker-*.xplane.pb")] == [1, 2]
    for rank in range(2):
        worker = shared / "workers" / f"worker-{rank}"
        complete(Recording.open(worker))
        assert json.loads((worker / "report.json").read_text())["steps"]
