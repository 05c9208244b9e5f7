"""The script's process is its own: the same with tfdoctor as without."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import command, environment, own_lines, plain, profiled
from tfdoctor.recording import Recording

EVERYTHING = """
import os, pickle, signal, subprocess, sys, threading

class Kept:
    value = 3

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
print(profile.__file__, utils.ANSWER)
print("to stderr", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    path = folder / "profile.py"
    (folder / "utils.py").write_text("ANSWER = 42\n")
    return path


def same(script: Path, tmp_path: Path, *args: str, **options: Any) -> None:
    """Assert that a script does the same with and without tfdoctor."""
    alone = plain(script, *args, **options)
    run = profiled(script, tmp_path / "out", *args, sample_every_ms=0, **options)
    assert run.stdout == alone.stdout
    assert own_lines(run.stderr) == alone.stderr
    assert run.code == alone.returncode
    assert run.manifest.outcome.exit_code == alone.returncode


def test_all_that_a_script_can_see_is_the_same(script: Path, tmp_path: Path) -> None:
    script.write_text(EVERYTHING.replace("import profile, utils", "import utils; profile = utils"))
    same(script, tmp_path, "--epochs", "2", "a b", stdin="typed\nlines")


def test_pythonpath_of_the_user_is_kept(script: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "mine.py").write_text("print('mine')\n")
    script.write_text(
        "import mine\n" + EVERYTHING.replace("import profile, utils", "import utils; profile = utils")
    )
    same(script, tmp_path, env=environment(PYTHONPATH=str(extra)))


def test_an_empty_pythonpath_adds_no_folder(script: Path, tmp_path: Path) -> None:
    script.write_text("import os, sys; print(sys.path, os.environ['PYTHONPATH'] == '')")
    same(script, tmp_path, env=environment(PYTHONPATH=""))


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    raise ValueError('training broke')\nf()\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('worse') from e\n",
        "import sys; sys.exit('a message')\n",
        "import nowhere_to_be_found\n",
        "from . import sibling\n",
        "def broken(:\n",
        "raise KeyboardInterrupt\n",
        "raise SystemExit(7)\n",
        "import os; os._exit(9)\n",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n",
    ],
)
def test_every_end_is_passed_on(script: Path, tmp_path: Path, source: str) -> None:
    script.write_text(source)
    alone = plain(script)
    run = profiled(script, tmp_path / "out", sample_every_ms=0)
    assert (run.stdout, own_lines(run.stderr)) == (alone.stdout, alone.stderr)
    assert run.code == (alone.returncode if alone.returncode >= 0 else 128 - alone.returncode)
    assert run.manifest.finished
    assert run.manifest.agent_errors == ()
    assert re.search("did not import|before it imported", run.missing()["trace"])


def test_the_users_sitecustomize_still_runs(script: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "sitecustomize.py").write_text("import os; os.environ['FROM_SITE'] = 'yes'\n")
    script.write_text("import os, sitecustomize; print(os.environ['FROM_SITE'], sitecustomize.__file__)")
    same(script, tmp_path, env=environment(PYTHONPATH=str(extra)))


def test_a_broken_sitecustomize_breaks_as_it_would(script: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "sitecustomize.py").write_text("raise ValueError('no')\n")
    script.write_text("print('still runs')")
    users = environment(PYTHONPATH=str(extra))
    alone = plain(script, env=users)
    run = profiled(script, tmp_path / "out", sample_every_ms=0, env=users)
    assert (run.code, run.stdout) == (0, alone.stdout)
    assert "Error in sitecustomize" in alone.stderr
    assert own_lines(run.stderr) == alone.stderr * 2  # tfdoctor's own interpreter says it as well


def test_the_environment_before_the_first_import_is_the_scripts(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import sys\n"
        "early = [m for m in sys.modules if m.split('.')[0] in ('tensorflow', 'keras', 'numpy')]\n"
        "print(early)\n"
    )
    same(script, tmp_path)


def started(script: Path, out: Path) -> subprocess.Popen[str]:
    """Start a profiled script in a process group of its own, and wait until it says 'ready'."""
    process = subprocess.Popen(
        command(script, out, sample_every_ms=50),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script.parent,
        env=environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_ctrl_c_reaches_the_script_and_130_comes_back(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "finally:\n    print('cleaned up', flush=True)\n"
    )
    process = started(script, tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stdout == "cleaned up\n"
    assert "KeyboardInterrupt" in stderr
    assert "tfdoctor: no training step was seen (the script was ended by SIGINT" in stderr
    manifest = Recording.open(tmp_path / "out").manifest
    assert manifest is not None
    assert (manifest.outcome.exit_code, manifest.outcome.signal) == (130, signal.SIGINT)


def test_a_script_may_survive_ctrl_c(script: Path, tmp_path: Path) -> None:
    script.write_text(
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    raise SystemExit(5)\n"
    )
    process = started(script, tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 5


def test_sigterm_to_tfdoctor_is_passed_on(script: Path, tmp_path: Path) -> None:
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = started(script, tmp_path / "out")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_killed_tfdoctor_leaves_a_recording_that_opens(script: Path, tmp_path: Path) -> None:
    over = tmp_path / "over"
    script.write_text(f"import time\nprint('ready', flush=True)\ntime.sleep(1)\nopen({str(over)!r}, 'x').close()\n")
    process = started(script, tmp_path / "out")
    process.kill()
    process.communicate(timeout=30)
    until = time.monotonic() + 60
    while not over.exists() and time.monotonic() < until:  # the script goes on to its end without us
        time.sleep(0.05)
    recording = Recording.open(tmp_path / "out")
    assert recording.manifest is not None
    assert not recording.manifest.finished
    assert recording.manifest.versions is not None
    assert recording.manifest.versions["python"] == sys.version.split()[0]
    assert any("unfinished" in note for note in recording.notes)


def test_a_fault_of_the_hook_is_recorded_and_not_raised(script: Path, tmp_path: Path) -> None:
    """The folder of the recording turns into a file while the script runs."""
    script.write_text(
        "import pathlib, shutil, sys\n"
        "out = pathlib.Path(sys.argv[1]); shutil.rmtree(out); out.write_text('mine now')\n"
        "print('done')\n"
    )
    out = tmp_path / "out"
    run = profiled(script, out, str(out), sample_every_ms=0)
    assert run.stdout == "done\n"
    assert run.code == 2
    assert run.stderr.startswith("error: ")
    assert "cannot be written" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_hook_that_cannot_be_installed_is_reported(script: Path, tmp_path: Path) -> None:
    script.write_text("print('runs')")
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    wrapper.chmod(0o755)
    run = profiled(script, tmp_path / "out", python=str(wrapper), sample_every_ms=0)
    assert (run.code, run.stdout) == (0, "runs\n")
    assert "the recorder did not start" in run.missing()["steps"]
