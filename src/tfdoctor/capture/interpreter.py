"""Which Python runs the script: the one that `python train.py` would use, where tfdoctor is not beside it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tfdoctor.terms.errors import CaptureError

PREFIX = sys.prefix
"""The environment that tfdoctor is in."""

RECEIPTS = ("pipx_metadata.json", "uv-receipt.toml")
"""What pipx and `uv tool` leave in an environment that they made for one program."""

HAS_TENSORFLOW = (
    "import sys, importlib.util; sys.exit(importlib.util.find_spec('tensorflow') is None)"
)

ASK_S = 30.0


def interpreter(named: str | None) -> str:
    """Return the Python that runs the script; `named` is that of `--python`.

    An activated virtual environment with TensorFlow comes first, since `python train.py` would use it. A tfdoctor
    that pipx or uv has installed for itself takes `python` from PATH for the same reason. Otherwise ours runs it.

    Raises:
        CaptureError: there is no such interpreter.
    """
    if named is not None:
        return _executable(named)
    if users := _activated() or (_on_path() if is_alone() else None):
        return users
    if importlib.util.find_spec("tensorflow") is not None:
        return sys.executable
    return _executable("python3")


def is_alone() -> bool:
    """Say whether pipx or `uv tool` made this environment, where no user's script has its packages."""
    return any(Path(PREFIX, receipt).is_file() for receipt in RECEIPTS)


def _executable(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CaptureError(f"Python interpreter {name} not found: name another with --python.")
    return path


def _activated() -> str | None:
    """Return the Python of the activated environment if it has TensorFlow and is not ours."""
    folder = os.environ.get("VIRTUAL_ENV")
    if not folder or Path(folder).resolve() == Path(sys.prefix).resolve():
        return None
    packages = Path(folder).glob("lib/python3*/site-packages/tensorflow/__init__.py")
    return shutil.which(str(Path(folder, "bin", "python"))) if any(packages) else None


def _on_path() -> str | None:
    """Return the first of `python` and `python3` on PATH that has TensorFlow."""
    for path in filter(None, map(shutil.which, ("python", "python3"))):
        try:
            asked = subprocess.run(  # noqa: S603 - the user's interpreter
                [path, "-c", HAS_TENSORFLOW], capture_output=True, timeout=ASK_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):  # no program, or one that waits for something
            continue
        if asked.returncode == 0:
            return path
    return None
