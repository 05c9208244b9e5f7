"""The plan of a recording, checked before anything is created."""

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfdoctor.capture.interpreter import interpreter
from tfdoctor.terms.errors import CaptureError

WATCH_S = 60.0  # Seconds of training without a visible step after which we suggest to trace by time (--for)


class Kind(StrEnum):
    """What the user gave to run."""

    SCRIPT = "script"
    MODULE = "module"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Plan:
    """One call of `tfdoctor profile`; `script` is a file, a module's name or a program, by `kind`.

    Without ``trace``, only the account of the run is recorded.
    """

    script: str
    args: tuple[str, ...] = ()
    out: Path | None = None
    python: str | None = None
    steps: int = 20
    warmup: int = 10
    stop_after: bool = False
    trace: bool = True
    sample_every_ms: int = 200
    seconds: float | None = None
    kind: Kind = Kind.SCRIPT
    quiet: bool = False
    watch_s: float = WATCH_S

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise CaptureError("The number of steps to trace must be 1 or more.")
        if self.warmup < 0 or self.sample_every_ms < 0:
            raise CaptureError("The warm-up steps and the sampling period cannot be negative.")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise CaptureError("The time to trace must be longer than zero, and finite.")
        if not self.trace and (self.seconds is not None or self.stop_after):
            raise CaptureError("A run without a trace has no time to trace, and no step to stop after.")

    @property
    def name(self) -> str:
        """The default name of the run."""
        if self.kind is Kind.MODULE:
            return self.script
        words = (self.script, *self.args) if self.kind is Kind.COMMAND else (self.script,)
        script = next((word for word in words if word.endswith((".py", ".sh"))), self.script)
        return Path(script).stem or "run"

    def check(self) -> None:
        """Check that the plan can run, before anything is created.

        Raises:
            CaptureError: there is no such script or program, or it is of another kind.
        """
        match self.kind:
            case Kind.SCRIPT:
                _check_script(self.script)
            case Kind.COMMAND:
                _check_program(self.script, self.python)
            case Kind.MODULE if not all(part.isidentifier() for part in self.script.split(".")):
                raise CaptureError(f"{self.script} is not a module name: -m takes package.module.")
            case Kind.MODULE:
                pass

    def command(self) -> list[str]:
        """Return the command to start."""
        match self.kind:
            case Kind.SCRIPT:
                return [self.interpreter(), self.script, *self.args]
            case Kind.MODULE:
                return [self.interpreter(), "-m", self.script, *self.args]
            case Kind.COMMAND:
                return [self.script, *self.args]

    def interpreter(self) -> str:
        """Return the Python that runs the script."""
        return interpreter(self.python)


def _check_program(program: str, python: str | None) -> None:
    if python is not None:
        raise CaptureError("--python applies to a script or -m only: a command chooses its own interpreter.")
    if shutil.which(program) is None:
        hint = "remove the --" if program.endswith(".py") else "check its path"
        raise CaptureError(f"Program {program} not found: {hint}.")


def _check_script(script: str) -> None:
    path = Path(script)
    if not path.exists():
        raise CaptureError(f"Script {script} not found: check the path.")
    if path.is_dir():
        raise CaptureError(f"{script} is a folder: name the Python script inside it.")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise CaptureError(f"{script} cannot be read ({error.strerror}): check its permissions.") from error
    _check_head(script, path.suffix, head)


def _check_head(script: str, suffix: str, head: bytes) -> None:
    """Refuse notebooks, programs and scripts in other languages."""
    first = head.split(b"\n", 1)[0]
    if suffix == ".ipynb":
        raise CaptureError(
            f"{script} is a notebook: convert it first with `jupyter nbconvert --to script {script}`."
        )
    if b"\0" in head or (first.startswith(b"#!") and b"python" not in first):
        raise CaptureError(
            f"{script} is not a Python script: name the training script, or run it as a command with "
            f"`tfdoctor profile -- {script}`."
        )
