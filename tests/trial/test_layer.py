"""The throw-away layer: real processes in a mount namespace, where this kernel allows one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfdoctor.trial import enter_layer
from tfdoctor.trial.running import layer_possible

LAYER = Path(enter_layer.__file__)

needs_layer = pytest.mark.skipif(
    bool(layer_possible(Path.cwd())), reason="this kernel allows no layer here"
)


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
        return subprocess.run(
            self.command(script), capture_output=True, text=True, check=False, timeout=60
        )

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return the bytes and the time of change of every file of the project."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@needs_layer
def test_the_program_sees_its_file_changed_under_its_own_name(ground: Ground) -> None:
    script = (
        "import module, inspect; print(module.VALUE, module.__file__, inspect.getsource(module))"
    )
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


@needs_layer
def test_a_program_without_its_tfdoctor_ends(ground: Ground) -> None:
    """tfdoctor is killed: neither the program nor what it has started may go on for hours."""
    pid = ground.keep / "pid"
    command = ground.command(
        "import os, subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path(sys.argv[1], 'pid.tmp').write_text(f'{os.getpid()} {child.pid}')\n"
        "os.rename(sys.argv[1] + '/pid.tmp', sys.argv[1] + '/pid')\n"
        "time.sleep(60)\n"
    )
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
