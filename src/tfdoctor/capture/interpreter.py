"""Which Python runs the script: the one that `python train.py` would use, whatever it has."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tfdoctor import own_python
from tfdoctor.terms.errors import CaptureError

PREFIX = sys.prefix  # The environment that tfdoctor is in
# What pipx and `uv tool` leave in an environment that they made for one program.
RECEIPTS = ("pipx_metadata.json", "uv-receipt.toml")
UVX = "archive-v0"  # The folder of uv's cache that has the environments of `uvx`, which puts them first on PATH

HAS_TENSORFLOW = "import sys, importlib.util; sys.exit(importlib.util.find_spec('tensorflow') is None)"

ASK_S = 30.0


def interpreter(named: str | None) -> str:
    """Return the Python that runs the script; `named` is that of `--python`.

    A tfdoctor that a shell has found on PATH takes the `python` that is found there, that of an activated
    environment for example; so does one that was named by its path, where another environment is activated. As
    `python -m tfdoctor`, inside of the user's process, or where PATH has the system's Python alone, it is of the
    environment that the user has chosen, unless pipx or uv made that environment for it alone.

    Raises:
        CaptureError: there is no such interpreter.
    """
    if named is not None:
        path = shutil.which(named)
        if path is None:
            raise CaptureError(f"Python interpreter {named} not found: name another with --python.")
        return path
    users = _on_path()
    if is_alone() and users is None:
        raise CaptureError("There is no python on PATH: name the script's with --python.")
    on_path = _called() and _called() == shutil.which("tfdoctor")
    environment = Path(users).parent.parent if users else Path()
    activated = (environment / "pyvenv.cfg").is_file() or environment.parent.name == "envs"  # not conda's base
    by_path = Path(_called()).name == "tfdoctor" and activated
    return users if users and (on_path or by_path or is_alone()) else sys.executable


def notice(python: str) -> str:
    """Return what is to be said of the interpreter that was chosen: "" where it is the obvious one."""
    users = _on_path()
    if _is_ours(python) and (users is None or _is_ours(users) or Path(_called()).name != "tfdoctor"):
        return ""
    lacks = "" if _is_ours(python) or _has_tensorflow(python) else ", which has no TensorFlow,"
    return f"runs it with {python}{lacks} (choose with --python)"


def is_alone() -> bool:
    """Say whether pipx or uv made this environment, where no user's script has its packages."""
    made = any(Path(PREFIX, receipt).is_file() for receipt in RECEIPTS)
    return made or Path(PREFIX).parent.name == UVX


def _called() -> str:
    """Return how tfdoctor was called; "" inside of the user's process."""
    return os.environ.get(own_python.MARK, "")


def _on_path() -> str | None:
    """Return `python` of PATH, or `python3` where there is none; not that of an environment for tfdoctor alone."""
    alone = Path(PREFIX, "bin").resolve() if is_alone() else None
    folders = [folder for folder in os.get_exec_path() if Path(folder).resolve() != alone]
    path = os.pathsep.join(folders)
    return shutil.which("python", path=path) or shutil.which("python3", path=path)


def _is_ours(python: str) -> bool:
    """Whether an interpreter is that of tfdoctor's environment: the same program, in the same folder."""
    ours, other = Path(sys.executable), Path(python)
    return (ours.parent.resolve(), ours.resolve()) == (other.parent.resolve(), other.resolve())


def _has_tensorflow(python: str) -> bool:
    """Whether an interpreter finds TensorFlow; one that does not answer is given the benefit of the doubt."""
    try:
        return asked(python, HAS_TENSORFLOW).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return True


def asked(python: str, code: str) -> subprocess.CompletedProcess[str]:
    """Return what an interpreter of the user's answers to a few lines, in the environment of the user's script.

    Raises:
        OSError: it cannot be started.
        TimeoutExpired: it does not answer.
    """
    return subprocess.run(  # noqa: S603 - the user's interpreter
        [python, "-c", code],
        env=own_python.users(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=ASK_S,
        check=False,
    )
