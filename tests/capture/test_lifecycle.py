"""How runs begin and end: whatever happens, the script does as it would alone, and what was recorded opens."""

import venv

from tests.capture.kit import *
from tests.capture.running import *
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording.run_log import RunLog


def waiting(script: Path, source: str, **plan: Any) -> subprocess.Popen[str]:
    """Start a profiled script that says "ready"."""
    script.write_text(source)
    return started(command(script, script.with_name("out"), **{"sample_every_ms": 50, **plan}), script.parent)


def over(process: subprocess.Popen[str], script: Path) -> Run:
    stdout, stderr = process.communicate(timeout=300)
    return Run(process.returncode, stdout, stderr, script.with_name("out"))


def child(script: Path) -> int:
    """Return the process of the script, as the manifest has it while it runs, soon after its start."""
    manifest = script.with_name("out") / "tfdoctor.json"
    until(lambda: json.loads(manifest.read_text())["times"])
    return int(json.loads(manifest.read_text())["times"]["pid"])


def own_line(run: Run) -> str:
    (line,) = (line for line in run.stderr.splitlines() if line.startswith("tfdoctor: "))
    return line


def lasted(log: RunLog) -> float:
    """Return until when the account goes, in s."""
    return max([log.end.end if log.end else 0.0, *(one.end for one in log.buckets)])


def told_s(script: Path) -> float:
    names: dict[str, Any] = {}
    exec(TEXT_OF["tells what is told"], names)
    return float(names["told_s"](script.with_name("out")))


def last(log: RunLog) -> tuple[str, int | None] | None:
    """Return why and in which line the account ends."""
    return (log.end.why, log.end.at[1] if log.end.at else None) if log.end else None


def looped(script: Path) -> None:
    """Put a training beside the script: loop.main()."""
    training(script.parent).rename(script.with_name("loop.py"))


def users_own(script: Path, source: str) -> None:
    """Put a sitecustomize of the user's beside the script, in the folder `extra`."""
    script.with_name("extra").mkdir()
    (script.with_name("extra") / "sitecustomize.py").write_text(source)


@each(
    {},
    {"PYTHONPATH": ""},
    {"PYTHONPATH": "extra"},
    {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
    ids=["plain", "empty path", "sitecustomize", "warnings"],
)
def test_all_that_a_script_can_see_is_the_same(users: dict[str, str], script: Path) -> None:
    """An empty PYTHONPATH adds no folder, and the user's own sitecustomize runs."""
    users_own(script, "import os; os.environ['FROM_SITE'] = 'yes'\n")
    for name in ("profile.py", "utils.py"):  # as of modules of others
        script.with_name(name).write_text("ANSWER = 42\n")
    fake_tensorflow(script.parent)
    given: dict[str, Any] = {"stdin": "typed\nlines", "env": environment(**users)}
    done = ran(script, TEXT_OF["shows everything"], "--epochs", "2", "a b", **given)
    alone = plain(script, "--epochs", "2", "a b", **given)
    assert (done.code, done.stdout, own_lines(done.stderr)) == (alone.returncode, alone.stdout, alone.stderr)
    assert done.manifest.outcome.exit_code == alone.returncode


def test_a_broken_sitecustomize_breaks_as_it_would(script: Path) -> None:
    users_own(script, "raise ValueError('no')\n")
    users = environment(PYTHONPATH=str(script.with_name("extra")))
    done, alone = ran(script, "print('still runs')", env=users), plain(script, env=users)
    assert (done.code, done.stdout) == (0, alone.stdout)
    assert "Error in sitecustomize" in alone.stderr
    assert own_lines(done.stderr) == alone.stderr * 2  # tfdoctor's own interpreter says it as well


@cases(
    ("def f():\n    raise ValueError('training broke')\nf()\n", ("exception", 2)),
    ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('worse') from e\n", ("exception", 4)),
    ("import sys; sys.exit('a message')\n", ("exit", None)),
    ("import nowhere_to_be_found\n", ("exception", 1)),
    ("def broken(:\n", ("exception", None)),
    ("raise KeyboardInterrupt\n", ("interrupt", 1)),
    ("import os; os._exit(9)\n", ("exit", None)),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n", None),
)
def test_every_end_is_passed_on(source: str, end: tuple[str, int | None] | None, script: Path) -> None:
    done, alone = ran(script, source), plain(script)
    assert (done.stdout, own_lines(done.stderr)) == (alone.stdout, alone.stderr)
    assert done.code == (alone.returncode if alone.returncode >= 0 else 128 - alone.returncode)
    assert re.match(r"tfdoctor: no (training step was seen|steps traced) \(the script ", own_line(done))
    assert (done.manifest.finished, done.manifest.agent_errors) == (True, ())
    assert re.search("did not import|before it imported", done.missing()["trace"])
    assert (last(done.log) if done.recording.run else None) == end


TRACED = "import loop\nprint('ready', flush=True)\nloop.main(10**9)\n"


@pytest.mark.tensorflow
@cases(
    (TRACED, signal.SIGKILL, 0.5, {"trace", "program"}, "SIGKILL during tracing, so there is no trace"),
    ("import time\nprint('ready', flush=True)\ntime.sleep(60)\n", signal.SIGTERM, 1.0, {"trace"}, "SIGTERM"),
    ids=["while it is traced", "without TensorFlow"],
)
def test_a_killed_script_says_so_and_leaves_its_account_up_to_its_last_second(
    source: str, number: signal.Signals, seconds: float, lacks: set[str], said: str, script: Path
) -> None:
    looped(script)
    process = waiting(script, source, steps=10**6)
    until(lambda: told_s(script) > seconds)
    glob = script.parent.glob
    until(
        lambda: source != TRACED or any('"open"' in one.read_text() for one in glob("out/processes/*/agent.json"))
    )
    os.kill(child(script), number)
    done = over(process, script)
    assert (done.code, done.manifest.finished, done.manifest.outcome.signal) == (128 + number, True, number)
    assert f"the script was ended by {said}" in own_line(done)
    assert lacks <= set(done.missing())
    assert (done.log.end, lasted(done.log) > seconds) == (None, True)


@pytest.mark.tensorflow
def test_a_training_goes_on_when_tfdoctor_is_killed_and_what_it_did_can_be_read(script: Path) -> None:
    looped(script)
    process = waiting(script, "import loop\nprint('ready', flush=True)\nloop.main(400)\n")
    pid = child(script)
    process.kill()
    done = over(process, script)  # the script's output ends when it does
    assert done.stdout == "trained\n"
    until(lambda: not Path(f"/proc/{pid}/cwd").exists())
    manifest, found = done.manifest, done.recording
    assert (manifest.finished, manifest.versions["python"]) == (False, sys.version.split()[0])
    assert any("unfinished" in note for note in found.notes)
    assert (done.window.steps, len(found.traces), done.log.process.pid) == (20, 1, pid)
    assert found.program is not None
    assert (manifest.steps.seen >= 30, lasted(done.log) > 1.0) == (True, True)
    told = cli("report", str(done.out), "--format", "json", folder=script.parent)
    assert told.returncode == 0, told.stderr


@each(1, 2)
def test_ctrl_c_is_the_scripts(times: int, script: Path) -> None:
    source = (
        f"{BUSY}try:\n    print('ready', flush=True)\n    work(60)\nfinally:\n    print('cleaning', flush=True)\n"
    )
    source += f"    time.sleep({0.3 if times == 1 else 60})\n    print('clean', flush=True)\n"
    process = waiting(script, source)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert sure(process.stdout).readline() == "cleaning\n"
    if times > 1:
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
    done = over(process, script)
    assert (done.code, done.stdout) == (130, "clean\n" if times == 1 else "")
    assert "KeyboardInterrupt" in done.stderr
    assert own_line(done).startswith("tfdoctor: no training step was seen (the script was ended by SIGINT")
    assert (done.manifest.outcome.exit_code, done.manifest.outcome.signal) == (130, signal.SIGINT)
    assert (sure(done.log.end).why, (done.out / "processes").exists()) == ("interrupt", False)


@each("fork", "spawn")
def test_the_account_is_of_the_script_that_replaces_itself_and_not_of_its_forks(method: str, script: Path) -> None:
    """A process that calls execv keeps its number; it must not write over what it was before."""
    done = ran(script, BUSY + TEXT_OF["forks and begins anew"], method)
    assert (done.code, done.stdout, bool(own_line(done))) == (4, "6\n", True)
    pids = [process.pid for process in done.manifest.processes]
    assert (done.log.process.pid, pids.count(done.times.pid)) == (done.times.pid, 2)
    assert (done.manifest.agent_errors, last(done.log)) == ((), ("exit", None))
    assert lasted(done.log) > 1.0


def test_what_workers_do_is_told_with_their_imports(script: Path) -> None:
    begin = BUSY + TEXT_OF["tells what is told"]
    done = ran(script, begin + TEXT_OF["feeds by workers"], trace=False)
    told = sure(sure(diagnose(done.recording, [], "", ask_xprof=False).run).workers)
    assert (done.code, told.number, told.starts, done.manifest.processes[1:]) == (0, 3, ("fork", "spawn"), ())
    imports = {(line.at.line, line.calls.partition(".")[0]) for line in told.imports if line.at}
    assert imports >= {(begin.count("\n") + 2, "keras")}  # what Python's own start imports has no line
    assert min(told.working_ms - 1700, told.most_working_ms) > 800
    assert sure(told.lines[0].at).line in (5, 6, 7)
    assert told.ms == pytest.approx(told.importing_ms + told.waiting_ms + told.working_ms)


def test_a_script_without_tensorflow_has_an_account_and_a_report(script: Path) -> None:
    script.write_text(f"{BUSY}work(1.2)\nprint('done')\n")
    words = ("profile", "--out", "out", "--no-trace", "--format", "json", "train.py")
    done = run_of(cli(*words, folder=script.parent), script.with_name("out"))
    assert (done.code, done.stdout.partition("\n")[0]) == (0, "done")
    assert "tfdoctor: recorded the run without a trace in " in done.stderr
    assert 1.2 <= lasted(done.log) <= (sure(done.times.ended_ns) - done.times.started_ns) / 1e9 + 0.1
    assert (done.log.process.pid, last(done.log)) == (done.times.pid, ("exit", None))
    assert {stack.at[1] for stack in done.log.stacks.values() if stack.at} & {5, 6, 7}
    assert (done.manifest.missing, sure(done.manifest.plan).trace) == ((), False)
    assert (done.out / "report.json").exists()


def test_a_python_without_tensorflow_is_named(script: Path) -> None:
    venv.create(script.with_name("env"), with_pip=False)
    done = ran(script, "import tensorflow\n", python=str(script.with_name("env") / "bin" / "python"))
    assert done.code == 1
    assert "ModuleNotFoundError: No module named 'tensorflow'" in own_lines(done.stderr)
    assert "_tfdoctor" not in done.stderr
    assert "name another interpreter with --python" in done.missing()["trace"]


@cases(("#!/nowhere/sh\n", 2), (f'#!/bin/sh\nexec {sys.executable} -I "$@"\n', 0), ids=["not started", "no hook"])
def test_a_python_that_cannot_be_started_or_hooked_is_said(wrapper: str, code: int, script: Path) -> None:
    python = script.with_name("python")
    python.write_text(wrapper)
    python.chmod(0o755)
    done = ran(script, "print('ran')", python=str(python))
    assert (done.code, done.stdout, done.out.exists()) == (code, "" if code else "ran\n", not code)
    why, said = (done.stderr, "could not be started") if code else (done.missing()["steps"], "did not start")
    assert said in why


def test_a_recording_whose_folder_is_taken_away_is_lost_and_the_run_is_not(script: Path) -> None:
    """The folder of the recording turns into a file while the script runs."""
    source = "import pathlib, shutil, sys\nout = pathlib.Path(sys.argv[1])\n"
    source += "shutil.rmtree(out)\nout.write_text('mine now')\nprint('done')\n"
    done = ran(script, source, str(script.with_name("out")))
    assert (done.code, done.stdout) == (2, "done\n")
    assert re.fullmatch(r"error: .*cannot be written.*\n", done.stderr)


@pytest.mark.tensorflow
def test_a_process_that_can_write_no_more_loses_the_trace_and_not_the_run(script: Path) -> None:
    looped(script)
    done = ran(script, TEXT_OF["may write no large file"], env=environment(PYTHONDONTWRITEBYTECODE="1"))
    assert (done.code, done.stdout) == (0, "trained\n")
    assert "the trace could not be written" in done.missing()["trace"]
    assert "no steps traced (the trace could not be written" in own_line(done)
    assert (done.manifest.steps.seen >= 30, lasted(done.log) > 0.5) == (True, True)


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a file system that is soon full."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_a_fault_of_the_recording_only(script: Path) -> None:
    script.write_text(TEXT_OF["tells what is told"] + TEXT_OF["fills a disk"])
    with small_disk(script.with_name("disk"), 256) as disk:
        words = ("--out", str(disk / "out"), "--no-report", "train.py", str(disk / "blob"))
        done = cli("profile", *words, folder=script.parent)
        assert (done.returncode, done.stdout) == (3, "full\n")
        assert "cannot be written (No space left on device): make room" in done.stderr
        assert lasted(recorded(disk / "out").log) > 0.5


def test_a_disk_that_is_full_from_the_start_is_said_before_the_run(script: Path) -> None:
    script.touch()
    with small_disk(script.with_name("disk"), 4) as disk:
        (disk / "blob").write_bytes(bytes(4096))
        done = profiled(script, disk / "out")
    assert (done.code, done.stdout, "choose another folder" in done.stderr) == (2, "", True)


EATS = "import time\ntime.sleep(1.0)\nheld = []\nwhile True:\n    held.append(bytearray(b'x' * (1 << 22)))\n"


@contextlib.contextmanager
def memory_cgroup(kilobytes: int) -> Iterator[Path]:
    """Make a cgroup of version 1 or 2 with so much memory; skip where none can be made."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((f"memory/{path}" for _, kinds, path in lines if "memory" in kinds.split(",")), None)
    base = own or next((path for _, kinds, path in lines if not kinds), "")
    folder = Path("/sys/fs/cgroup") / base.strip("/") / f"tfdoctor-test-{os.getpid()}"
    try:
        try:
            folder.mkdir()
            (folder / ("memory.limit_in_bytes" if own else "memory.max")).write_text(str(kilobytes * 1024))
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
        done = run_of(ended(["sh", "-c", joined, "sh", *command(script, out)], script.parent), out)
    assert (done.code, done.times.oom_kills, done.times.limit_bytes) == (137, 1, 400_000 * 1024)
    assert "killed by the kernel, which was out of memory" in done.stderr
    assert done.log.end is None
