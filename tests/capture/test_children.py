"""Children with an environment of their own have the agent, and see what they would see without it."""

import builtins

from tests.capture.kit import *
from tfdoctor.capture.plan import agent_environment
from tfdoctor.capture.site import _tfdoctor_children as children

CHILD = (
    "import os, sys; "
    "print(sorted((k, v) for k, v in os.environ.items() if 'PYTHON' in k or 'TFDOCTOR' in k), file=sys.stdout); "
    "print('_tfdoctor_door' in sys.modules, file=sys.stderr)"
)
"""Prints what it sees of the environment, and, apart from it, whether the agent waits in it."""

START = f"""
import os, subprocess, sys
CHILD = {CHILD!r}
WORDS = [sys.executable, "-c", CHILD]
def apart(name, start):
    print(name, flush=True)
    if os.fork() == 0:
        exec(start)
        os._exit(0)
    os.wait()
"""

STARTS = {
    "copy": "subprocess.run(WORDS, env=dict(os.environ, SEED='1'))",
    "popen": "subprocess.Popen(WORDS, env=os.environ.copy()).wait()",
    "bare": "subprocess.run(WORDS, env={})",
    "bytes": "subprocess.run(WORDS, env={b'SEED': b'1'})",
    "own path": "subprocess.run(WORDS, env=dict(os.environ, PYTHONPATH='lib'))",
    "empty path": "subprocess.run(WORDS, env=dict(os.environ, PYTHONPATH=''))",
    "posix_spawn of subprocess": "subprocess.run(WORDS, close_fds=False)",
    "posix_spawn": "os.waitpid(os.posix_spawn(WORDS[0], WORDS, dict(os.environ)), 0)",
    "spawnve": "os.spawnve(os.P_WAIT, WORDS[0], WORDS, dict(os.environ))",
    "execve": "os.execve(WORDS[0], WORDS, env={'SEED': '1'})",
    "execvpe": "os.execvpe(WORDS[0], WORDS, {'PATH': ''})",
    "shell": "subprocess.run(['sh', '-c', '\"$0\" -c \"$1\"', sys.executable, CHILD], env={})",
    "assigned": "os.environ['PYTHONPATH'] = 'lib'; subprocess.run(WORDS)",
    "removed": "os.environ.pop('PYTHONPATH', None); subprocess.run(WORDS)",
    "cleared": "os.environ.clear(); os.system(f'{sys.executable} -c \"{CHILD}\"')",
}

SHOWN = """
import traceback
for fails in (
    lambda: os.execve("/nowhere", ["nowhere"], {"A": "1"}),
    lambda: os.execve("/nowhere", ["nowhere"]),
    lambda: os.execve(WORDS[0], WORDS, {"A=": "1"}),
    lambda: os.posix_spawn(WORDS[0], WORDS, 5),
    lambda: subprocess.run(["/nowhere"], env={}),
    lambda: os.putenv("A" + chr(0), "1"),
    lambda: os.putenv("A", 1),
    lambda: os.unsetenv(""),
):
    try:
        fails()
    except (OSError, TypeError, ValueError):
        print(traceback.format_exc())
print(os.execve in os.supports_fd, os.execve.__module__, os.execve.__doc__)
"""


def started(source: str, folder: Path, followed: str = "", own: str | None = None) -> Any:
    """Run a script, below tfdoctor where `followed` says how it sees our variables."""
    script = folder / "launch.py"
    script.write_text(START + source + "\n")
    variables = environment() if own is None else environment(PYTHONPATH=own)
    if followed:
        variables = agent_environment(variables, {"processes": str(folder)}, hidden=followed == "hidden")
        variables["TFDOCTOR_PLAN"] = variables["TFDOCTOR_PLAN"].replace(f"{os.getpid()} ", "0 ", 1)
    words = [sys.executable, str(script)]
    return subprocess.run(words, capture_output=True, text=True, env=variables, timeout=60, check=False)


ALL = "".join(f"apart({name!r}, {start!r})\n" for name, start in STARTS.items())


@each(None, "", "own")
def test_the_agent_is_in_every_child_and_hidden(own: str | None, tmp_path: Path) -> None:
    alone, below = started(ALL, tmp_path, own=own), started(ALL, tmp_path, own=own, followed="hidden")
    assert (alone.stderr, below.stderr) == ("False\n" * len(STARTS), "True\n" * len(STARTS))
    assert below.stdout == alone.stdout
    assert alone.stdout.count("[") == len(STARTS)


def test_the_agent_is_in_every_child_of_a_command(tmp_path: Path) -> None:
    assert started(ALL, tmp_path, followed="visible").stderr == "True\n" * len(STARTS)


def test_what_another_tfdoctor_gives_its_run_is_left_as_it_is(tmp_path: Path) -> None:
    words = "[sys.executable, '-S', '-c', 'import os; print(os.environ)']"
    start = f"subprocess.run({words}, env={{'TFDOCTOR_PLAN': 'other'}})"
    assert started(start, tmp_path, "hidden").stdout == started(start, tmp_path).stdout


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a frame of ours stays in Python 3.10")
def test_errors_are_those_of_the_functions_themselves(tmp_path: Path) -> None:
    alone, below = started(SHOWN, tmp_path), started(SHOWN, tmp_path, followed="hidden")
    assert (below.stdout, below.stderr, below.returncode) == (alone.stdout, "", 0)


def test_a_name_that_only_another_module_has_is_left_in_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """`subprocess` calls `fork_exec` by a name of its own."""
    monkeypatch.setattr(subprocess, "length_of", len, raising=False)
    children.wrap(subprocess, "length_of", lambda original, *given: original(*given) + 1)
    assert subprocess.length_of([1]) == 2  # type: ignore[attr-defined]  # made above
    assert not hasattr(builtins, "length_of")
