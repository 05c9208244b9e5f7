"""The throw-away layer: real processes in a mount namespace, where this kernel allows one."""

import json
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tfdoctor.trial import enter_layer
from tfdoctor.trial.running import layer_possible

LAYER = Path(enter_layer.__file__)

needs_layer = pytest.mark.skipif(bool(layer_possible(Path.cwd())), reason="this kernel allows no layer here")


class Ground:
    """A folder with a program, another text of one of its files, and a folder whose writes stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.keep, self.mount, self.other = folder / "keep", folder / "mount", folder / "other.py"
        for made in (self.folder, self.keep, self.mount):
            made.mkdir()
        self.module = self.folder / "module.py"
        self.module.write_text("VALUE = 'as it is'\n")
        self.other.write_text("VALUE = 'changed'\n")

    def command(self, script: str) -> list[str]:
        (self.folder / "program.py").write_text(script)
        layer = {
            "changed": {str(self.module): str(self.other)},
            "keep": [str(self.keep)],
            "bytes": 2**24,
            "folder": str(self.folder),
            "mount": str(self.mount),
        }
        launcher = [sys.executable, "-I", "-S", str(LAYER), json.dumps(layer)]
        return [*launcher, sys.executable, "program.py", str(self.keep)]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(script), capture_output=True, text=True, check=False, timeout=60)

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return the bytes and the time of change of every file of the project."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@needs_layer
def test_the_program_sees_its_file_changed_under_its_own_name(ground: Ground) -> None:
    script = "import module, inspect; print(module.VALUE, module.__file__, inspect.getsource(module))"
    done = ground.run(script)
    assert done.returncode == 0, done.stderr
    assert "changed" in done.stdout
    assert str(ground.module) in done.stdout
    assert "as it is" not in done.stdout


@needs_layer
def test_writes_are_thrown_away_but_for_the_folder_that_stays(ground: Ground) -> None:
    script = (
        "import sys, pathlib\n"
        "pathlib.Path('new.txt').write_text('x')\n"
        "pathlib.Path('module.py').write_text('overwritten')\n"
        "pathlib.Path(sys.argv[1], 'figures').write_text('kept')\n"
        "print(sorted(path.name for path in pathlib.Path().iterdir()))\n"
    )
    command = ground.command(script)
    before = ground.content()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "new.txt" in done.stdout
    assert ground.content() == before
    assert (ground.keep / "figures").read_text() == "kept"


@needs_layer
def test_shared_memory_is_thrown_away_too(ground: Ground) -> None:
    name = Path("/dev/shm") / f"tfdoctor-test-{os.getpid()}"
    done = ground.run(f"open({str(name)!r}, 'w').write('x'); print('written')")
    assert done.stdout == "written\n"
    assert not name.exists()


@needs_layer
def test_a_folder_that_is_there_can_be_made_again_and_renamed(ground: Ground) -> None:
    """Scripts do so with the logs and checkpoints of earlier runs."""
    for name in ("logs", "checkpoints"):
        (ground.folder / name).mkdir()
        (ground.folder / name / "old").touch()
    script = (
        "import os, shutil\n"
        "shutil.rmtree('logs'); os.mkdir('logs'); print(os.listdir('logs'))\n"
        "os.rename('checkpoints', 'earlier'); print(os.listdir('earlier'))\n"
    )
    command = ground.command(script)
    before = ground.content()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("[]\n"), done.stderr
    if enter_layer.privileged():
        assert done.stdout == "[]\n['old']\n", done.stderr
    assert ground.content() == before


def others_python(user: int) -> str:
    """Return a Python that another user may run."""
    for python in (sys.executable, shutil.which("python3", path=os.defpath)):
        try:
            if python and not subprocess.run([python, "-c", ""], user=user, check=False).returncode:
                return python
        except PermissionError:
            continue
    pytest.skip("no Python that another user may run")


COMING_AND_GOING = """
import os, sys
os.chdir(sys.argv[1]); print(1, flush=True)
while True:
    for name in map(str, range(50)):
        os.mkdir('folder' + name); open('file' + name, 'w').close()
    for name in map(str, range(50)):
        os.rmdir('folder' + name); os.unlink('file' + name)
"""
"""A program that makes folders and files, and removes them, until it is killed."""


def give_to(user: int, above: Path) -> None:
    """Let a user own all that lies in a folder of root, and read the program that enters a layer."""
    shutil.copy(LAYER, above / "enter_layer.py")
    for path in above.rglob("*"):
        os.chown(path, user, user)


def run_as(user: int, python: str, above: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the words of a command in its layer, as another user."""
    home = str(above / "project")
    return subprocess.run(
        [python, "-I", "-S", str(above / "enter_layer.py"), words[0], python, *words[2:]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        user=user,
        group=user,
        extra_groups=(),
        env={"HOME": home, "TMPDIR": home},
    )


@needs_layer
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_unprivileged_user_writes_no_file_next_to_the_folder() -> None:
    """The folder above belongs to root: it is made anew in the layer, file by file."""
    user = 54321
    python = others_python(user)
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        above = Path(temporary)
        above.chmod(0o1777)
        ground = Ground(above)
        (above / "shared.log").write_text("mine")
        (above / "large.log").touch()
        os.truncate(above / "large.log", enter_layer.COPIED + 1)
        (ground.folder / "logs").mkdir()
        script = (
            "import os, module\n"
            "os.rmdir('logs'); os.mkdir('logs'); open('logs/new', 'w').close()\n"
            "open('../shared.log', 'a').write('+')\n"
            "os.replace('../shared.log', '../renamed'); print(open('../renamed').read())\n"
            "try:\n"
            "    open('../large.log', 'a')\n"
            "except OSError as error:\n"
            "    print(error.strerror, module.VALUE)\n"
        )
        command = ground.command(script)[4:]
        give_to(user, above)
        done = run_as(user, python, above, command)
        assert done.stdout == "mine+\nRead-only file system changed\n", done.stderr
        assert (above / "shared.log").read_text() == "mine"
        assert (above / "large.log").stat().st_size == enter_layer.COPIED + 1
        assert not list((ground.folder / "logs").iterdir())


@needs_layer
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_what_others_remove_beside_the_folder_ends_no_run() -> None:
    """Other programs make and remove files in /tmp while it is shown to an unprivileged user."""
    user = 54321
    python = others_python(user)
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        above = Path(temporary)
        above.chmod(0o1777)
        ground = Ground(above)
        command = ground.command("print('ran')")[4:]
        give_to(user, above)
        with subprocess.Popen(
            [sys.executable, "-c", COMING_AND_GOING, temporary], stdout=subprocess.PIPE
        ) as others:
            assert others.stdout is not None
            others.stdout.read(1)
            runs = [run_as(user, python, above, command) for _ in range(5)]
            others.kill()
        assert [run.stdout for run in runs] == ["ran\n"] * 5, [run.stderr for run in runs]


def test_an_entry_that_is_gone_in_each_look_is_left_out_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, root = tmp_path / "folder", tmp_path / "root"
    for name in ("a", "gone", "z"):
        (folder / name).mkdir(parents=True)
    looks = []

    class Shown(enter_layer.Overlay):
        def __init__(self) -> None:
            self.root = root

        def _made_anew(self, folder: Path) -> bool:
            return folder.name == "folder"

        def overlay(self, folder: Path) -> None:
            if folder.name == "gone":
                looks.append(folder)
                raise FileNotFoundError(folder)

    monkeypatch.setattr(enter_layer, "AS_THEY_ARE", ())
    (root / folder.parent.relative_to("/")).mkdir(parents=True)
    Shown().cover_entry(folder)
    assert len(looks) == enter_layer.LOOKS
    assert sorted(one.name for one in (root / folder.relative_to("/")).iterdir()) == ["a", "z"]


@needs_layer
@pytest.mark.skipif(not enter_layer.privileged(), reason="only root may mount")
def test_files_beside_a_mounted_folder_are_not_written(ground: Ground) -> None:
    """Such as a project in a container with its data mounted inside."""
    for name in ("data", "d\u00e4 ta"):
        (ground.folder / name).mkdir()
    (ground.folder / "log").write_text("mine")
    (ground.folder / "setting").write_text("not mounted")
    script = (
        "import os\n"
        "print(*sorted(os.listdir('data') + os.listdir('d\u00e4 ta')), open('setting').read())\n"
        "for name in 'log', 'setting': open(name, 'a').write('+')\n"
        "open('new', 'w').close(); os.replace('new', 'log'); print(os.path.getsize('log'))\n"
    )
    command = ground.command(script)
    mounts = (
        "mount -t tmpfs none data && touch data/one && "
        "mount -t tmpfs none 'd\u00e4 ta' && touch 'd\u00e4 ta/two' && "
        'mount --bind ../other.py setting && "$@" && cat setting log'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounts, "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ground.folder,
    )
    text = "VALUE = 'changed'\n"
    assert done.stdout == f"one two {text}\n0\n{text}mine", done.stderr


@needs_layer
def test_bytecode_that_is_never_checked_does_not_hide_the_change(ground: Ground) -> None:
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    stored = Path(str(py_compile.compile(str(ground.module), invalidation_mode=mode)))
    before = stored.read_bytes()
    assert ground.run("import module; print(module.VALUE)").stdout == "changed\n"
    assert stored.read_bytes() == before


@needs_layer
def test_the_exit_code_is_the_programs(ground: Ground) -> None:
    assert ground.run("raise SystemExit(7)").returncode == 7
    assert ground.run("import os; os.kill(os.getpid(), 9)").returncode == 128 + 9


@needs_layer
def test_nothing_is_left_after_kill_9_in_the_middle(ground: Ground) -> None:
    script = (
        "import sys, time, pathlib\n"
        "pathlib.Path('checkpoint').write_bytes(b'x' * 100000)\n"
        "pathlib.Path(sys.argv[1], 'ready').touch()\n"
        "time.sleep(60)\n"
    )
    command = ground.command(script)
    before = ground.content()
    process = subprocess.Popen(command, start_new_session=True)
    ready = ground.keep / "ready"
    deadline = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ready.exists()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert ground.content() == before
    assert not list(ground.mount.iterdir())


DAEMON = (
    "import os, subprocess, sys, time, pathlib\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
    "pathlib.Path('pid.tmp').write_text(f'{os.getpid()} {child.pid}')\n"
    "os.rename('pid.tmp', 'pid')\n"
)


def test_a_run_leaves_no_daemon(tmp_path: Path) -> None:
    """A server that the program starts in a session of its own would still hold its port in the next run."""
    launcher = [sys.executable, "-I", "-S", str(LAYER), "null"]
    done = subprocess.run([*launcher, sys.executable, "-c", DAEMON], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert not any(map(lives, (tmp_path / "pid").read_text().split()))


@needs_layer
def test_a_program_without_its_tfdoctor_ends(ground: Ground) -> None:
    """tfdoctor is killed: neither the program nor what it has started may go on for hours."""
    pid = ground.keep / "pid"
    command = ground.command(f"import os, sys; os.chdir(sys.argv[1])\n{DAEMON}time.sleep(60)\n")
    starter = f"import subprocess, sys; subprocess.Popen({command!r}).wait()"
    parent = subprocess.Popen([sys.executable, "-c", starter])
    deadline = time.monotonic() + 30
    while not pid.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    numbers = pid.read_text().split()
    assert len(numbers) == 2
    parent.kill()
    parent.wait()
    while any(map(lives, numbers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(lives, numbers))


def lives(number: str) -> bool:
    """Say whether a process runs; one that nobody has waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False


def test_a_kernel_that_refuses_is_one_sentence(ground: Ground) -> None:
    """A limit of no memory for the layer stands for any refusal."""
    ground.mount.rmdir()
    done = ground.run("print('ran')")
    assert done.returncode == enter_layer.NO_LAYER
    assert done.stderr.startswith("tfdoctor: no throw-away layer: ")
    assert len(done.stderr.splitlines()) == 1
    assert "ran" not in done.stdout
