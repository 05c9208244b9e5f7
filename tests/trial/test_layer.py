"""Writes that are thrown away, and programs that leave nothing, with real processes."""

import pytest

from tests.trial.kit import *

needs_layer = pytest.mark.skipif(bool(layer.why_not(Path.cwd())), reason="writes cannot be thrown away here")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can")


class Ground:
    """A folder with a program, another text of one of its files, and a folder whose writes stay."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keep, self.other = folder / "project", folder / "keep", folder / "other.py"
        self.folder.mkdir()
        self.keep.mkdir()
        self.module = self.folder / "module.py"
        self.module.write_text("VALUE = 'as it is'\n")
        self.other.write_text("VALUE = 'changed'\n")

    def command(self, script: str, python: str = sys.executable) -> list[str]:
        """Return what a trial starts of a program."""
        (self.folder / "program.py").write_text(script)
        entering = layer.entering(self.folder, os.environ, {self.module: self.other}, [self.keep])
        return [python, *LEASH[1:], *entering, python, "program.py", str(self.keep)]

    def run(self, script: str, before: tuple[str, ...] = (), user: int | None = None) -> str:
        """Run a program in its layer, after the words ``before``; return what it printed, and its exit code."""
        command = self.command(script, sys.executable if user is None else others_python(user))
        content = self.content()
        of_user: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": ()}
        output: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": 60}
        done = subprocess.run([*before, *command], **output, **of_user)
        assert self.content() == content
        return f"{done.stdout}{done.stderr}exit {done.returncode}"

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return the bytes and the time of change of every file of the user's."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


SEES = "import module, inspect; print(module.VALUE, module.__file__, 'changed' in inspect.getsource(module))"

WRITES = """
import sys, pathlib
pathlib.Path('new.txt').write_text('x')
pathlib.Path('module.py').write_text('overwritten')
pathlib.Path(sys.argv[1], 'figures').write_text('kept')
print(sorted(path.name for path in pathlib.Path().iterdir()))
"""

MAKES_AGAIN = """
import os, shutil
shutil.rmtree('logs'); os.mkdir('logs'); print(os.listdir('logs'))
shutil.move('checkpoints', 'earlier'); print(os.listdir('earlier'))
"""


@needs_layer
@cases(
    (SEES, "changed {folder}/module.py True\nexit 0"),
    (WRITES, "['checkpoints', 'logs', 'module.py', 'new.txt', 'program.py']\nexit 0"),
    (MAKES_AGAIN, "[]\n['old']\nexit 0"),  # scripts do so with what earlier runs have left
    ("open('/dev/shm/tfdoctor-test', 'w').write('x'); print('written')", "written\nexit 0"),
    ("raise SystemExit(7)", "exit 7"),
    ("import os; os.kill(os.getpid(), 9)", "exit 137"),
)
def test_a_program_does_as_ever_and_what_it_writes_is_thrown_away(script: str, shown: str, ground: Ground) -> None:
    for name in ("logs", "checkpoints"):
        (ground.folder / name).mkdir()
        (ground.folder / name / "old").touch()
    assert ground.run(script) == shown.format(folder=ground.folder)
    assert not Path("/dev/shm/tfdoctor-test").exists()
    assert [path.read_text() for path in ground.keep.iterdir()] == (["kept"] if script == WRITES else [])


def others_python(user: int) -> str:
    """Return a Python that another user may run."""
    for python in (sys.executable, shutil.which("python3", path=os.defpath)):
        with suppress(PermissionError):
            if python and not subprocess.run([python, "-c", ""], user=user, check=False).returncode:
                return python
    pytest.skip("no Python that another user may run")


@needs_layer
@needs_root
def test_an_unprivileged_user_writes_no_file_next_to_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder above belongs to root, so through an overlay over it nothing could be written below."""
    user = 54321
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        above = Path(temporary)
        above.chmod(0o1777)
        ground = Ground(above)
        (above / "shared.log").write_text("mine")
        (ground.folder / "logs").mkdir()
        for path in (above / "shared.log", ground.folder, ground.keep, *ground.folder.rglob("*")):
            os.chown(path, user, user)
        monkeypatch.setattr(os, "getuid", lambda: user)
        monkeypatch.setattr(os, "getgid", lambda: user)
        monkeypatch.setenv("HOME", str(ground.folder))
        script = (
            "import os, module; print(module.VALUE.strip(), os.getuid())\n"
            "os.rmdir('logs'); os.mkdir('logs'); open('logs/new', 'w').close()\n"
            "open('../shared.log', 'a').write('+'); print(open('../shared.log').read())\n"
        )
        assert ground.run(script, user=user) == f"changed {user}\nmine+\nexit 0"


@needs_layer
@needs_root
def test_files_beside_a_mounted_folder_are_not_written(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a project in a container with its data mounted inside."""
    names = ("data", "d\u00e4 ta", "setting")
    for name in names[:2]:
        (ground.folder / name).mkdir()
    for name in ("log", "setting"):
        (ground.folder / name).write_text("mine")
    script = (
        "import os\n"
        "print(*sorted(os.listdir('data') + os.listdir('d\u00e4 ta')), open('setting').read())\n"
        "open('log', 'a').write('+'); open('data/three', 'w').close()\n"
        "open('new', 'w').close(); os.replace('new', 'log'); print(os.path.getsize('log'))\n"
        "open('setting', 'a')\n"
    )
    mounts = (
        f"cd {ground.folder} && mount -t tmpfs none data && touch data/one && "
        "mount -t tmpfs none 'd\u00e4 ta' && touch 'd\u00e4 ta/two' && "
        'mount --bind ../other.py setting && "$@"; code=$?; cat log; ls data; exit $code'
    )
    seen = psutil.disk_partitions(all=True)
    mine = [SimpleNamespace(mountpoint=str(ground.folder / name)) for name in names]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [*seen, *mine])
    shown = ground.run(script, before=("unshare", "-m", "sh", "-c", mounts, "sh"))
    assert shown.startswith("one two VALUE = 'changed'\n\n0\nmineone\nTraceback")
    assert "Read-only file system" in shown


@cases(
    ([], ["", "code"]),
    (["data"], ["code", "data", "logs"]),  # of a folder with something mounted inside, those in it
    (["data", "logs/old/remote"], ["code", "data", "logs/new", "logs/old/remote"]),
)
def test_no_overlay_of_an_unprivileged_user_lies_over_a_mount(
    mounts: list[str], covered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("code", "logs/new", "logs/old/remote", "data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("code")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    mounted = [SimpleNamespace(mountpoint=str(tmp_path / name)) for name in mounts]
    seen = psutil.disk_partitions(all=True)
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: [*seen, *mounted])
    words = layer.entering(tmp_path / "code", {})
    over = [place for option, place in pairwise(words) if option == "--tmp-overlay"]
    assert [one for one in over if Path(one).is_relative_to(tmp_path)] == [str(tmp_path / one) for one in covered]


@needs_layer
def test_bytecode_that_is_never_checked_does_not_hide_the_change(ground: Ground) -> None:
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(ground.module), invalidation_mode=mode)
    assert ground.run("import module; print(module.VALUE)") == "changed\nexit 0"


@needs_layer
def test_nothing_is_left_after_kill_9_in_the_middle(ground: Ground) -> None:
    script = (
        "import sys, time, pathlib\n"
        "pathlib.Path('checkpoint').write_bytes(b'x' * 100000)\n"
        "pathlib.Path('module.py').write_text('overwritten')\n"
        "pathlib.Path(sys.argv[1], 'ready').touch()\n"
        "time.sleep(60)\n"
    )
    command, before = ground.command(script), ground.content()
    process = subprocess.Popen(command, start_new_session=True)
    assert until((ground.keep / "ready").exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert ground.content() == before


DAEMON = (
    "import os, subprocess, sys, time, pathlib\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
    "pathlib.Path('pid.tmp').write_text(f'{os.getpid()} {child.pid}')\n"
    "os.rename('pid.tmp', 'pid')\n"
)


def test_a_run_leaves_no_daemon(tmp_path: Path) -> None:
    """A server that the program starts in a session of its own would still hold its port in the next run."""
    done = subprocess.run([*LEASH, sys.executable, "-c", DAEMON], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert not any(map(lives, (tmp_path / "pid").read_text().split()))


@pytest.mark.parametrize("in_layer", [False, pytest.param(True, marks=needs_layer)])
def test_a_program_without_its_tfdoctor_ends(ground: Ground, *, in_layer: bool) -> None:
    """tfdoctor is killed: neither the program nor what it has started may go on for hours."""
    command = ground.command(f"import os, sys; os.chdir(sys.argv[1])\n{DAEMON}time.sleep(60)\n")
    if not in_layer:
        command = [*LEASH, sys.executable, str(ground.folder / "program.py"), str(ground.keep)]
    starter = f"import subprocess, sys; subprocess.Popen({command!r}).wait()"
    parent = subprocess.Popen([sys.executable, "-c", starter])
    assert until((ground.keep / "pid").exists)
    numbers = (ground.keep / "pid").read_text().split()
    parent.kill()
    parent.wait()
    assert until(lambda: not any(map(lives, numbers)))


def lives(number: str) -> bool:
    """Say whether a process runs; one that nobody has waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False


@cases(
    (None, "bubblewrap 0.11 or newer is not installed"),
    ("echo 'bwrap: Unknown option --overlay-src' >&2; exit 1", "an older one is installed"),
    ("echo 'bwrap: No permissions to create a new namespace' >&2; exit 1", "No permissions to create"),
    ("exit 0", ""),
)
def test_why_there_is_no_layer(
    installed: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installed is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{installed}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why in layer.why_not(tmp_path)
    assert bool(why) == bool(layer.why_not(tmp_path))
