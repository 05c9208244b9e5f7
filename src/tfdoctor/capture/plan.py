"""What to record, and whether that is possible."""

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tfdoctor.errors import CaptureError


@dataclass(frozen=True, slots=True)
class Plan:
    """One call of `tfdoctor profile`."""

    script: str
    args: tuple[str, ...] = ()
    out: Path | None = None
    python: str | None = None
    steps: int = 20
    warmup: int = 10
    stop_after: bool = False
    sample_every_ms: int = 200

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise CaptureError("Nothing to trace: --steps must be 1 or more.")
        if self.warmup < 0 or self.sample_every_ms < 0:
            raise CaptureError("--warmup and --sample-every cannot be negative.")

    def interpreter(self) -> str:
        """Return the Python that runs the script."""
        if self.python is not None:
            return _executable(self.python)
        if importlib.util.find_spec("tensorflow") is not None:
            return sys.executable
        return _executable("python3")

    def check_script(self) -> None:
        """Refuse, before anything is created, what Python could not run as a script."""
        path = Path(self.script)
        if not path.exists():
            raise CaptureError(f"There is no script {self.script}: check the path.")
        if path.is_dir():
            raise CaptureError(f"{self.script} is a folder: name the Python script inside it.")
        try:
            with path.open("rb") as file:
                head = file.read(4096)
        except OSError as error:
            raise CaptureError(
                f"{self.script} cannot be read ({error.strerror}): check its permissions."
            ) from error
        _check_head(self.script, path.suffix, head)


def _executable(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CaptureError(f"There is no Python {name} to run the script with: see --python.")
    return found


def _check_head(script: str, suffix: str, head: bytes) -> None:
    """Tell a notebook, a program and another language's script from Python."""
    first = head.split(b"\n", 1)[0]
    if suffix == ".ipynb":
        raise CaptureError(
            f"{script} is a notebook: convert it first (jupyter nbconvert --to script {script})."
        )
    if b"\0" in head or (first.startswith(b"#!") and b"python" not in first):
        raise CaptureError(f"{script} is not a Python script: name the script that trains.")
