"""The plan of a recording, checked before anything is created, and the environment that takes it to the agent."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tfdoctor.capture.interpreter import interpreter
from tfdoctor.terms.errors import CaptureError

SITE = str(Path(__file__).parent / "site")
PLAN = "TFDOCTOR_PLAN"


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
        if self.kind is Kind.SCRIPT:
            _check_script(self.script)
        elif self.kind is Kind.MODULE and not all(part.isidentifier() for part in self.script.split(".")):
            raise CaptureError(f"{self.script} is not a module name: -m takes package.module.")
        elif self.kind is Kind.COMMAND and self.python is not None:
            raise CaptureError("--python applies to a script or -m only: a command chooses its own interpreter.")
        elif self.kind is Kind.COMMAND and shutil.which(self.script) is None:
            hint = "remove the --" if self.script.endswith(".py") else "check its path"
            raise CaptureError(f"Program {self.script} not found: {hint}.")

    def command(self) -> list[str]:
        """Return the command to start."""
        words = [self.script, *self.args]
        if self.kind is Kind.COMMAND:
            return words
        return [interpreter(self.python), *(["-m"] if self.kind is Kind.MODULE else []), *words]


def agent_environment(variables: Mapping[str, str], settings: Mapping[str, Any], *, hidden: bool) -> dict[str, str]:
    """Return environment variables with those that load the agent.

    A command sees our variables, since launchers copy their environment (`env=dict(os.environ, …)`); the agent
    hides them from a script or a module.
    """
    inherited = variables.get("PYTHONPATH")
    others = [entry for entry in inherited.split(os.pathsep) if entry != SITE] if inherited else []
    empty = inherited in ("", os.pathsep.join([SITE, SITE]))
    paths = [SITE, *others, *([SITE] if empty else [])]  # twice marks a PYTHONPATH that was set but empty
    visibility = "hidden" if hidden else "visible"
    return {
        **variables,
        "PYTHONPATH": os.pathsep.join(paths),
        PLAN: f"{os.getpid()} {visibility} {json.dumps(settings)}",
    }


def agent_plan(plan: Plan, processes: Path) -> Mapping[str, Any]:
    """Return the part of the plan that the agent needs, as JSON; each makes its folder below `processes`."""
    return {
        "processes": str(processes),
        "steps": plan.steps,
        "warmup": plan.warmup,
        "seconds": plan.seconds,
        "stop_after": plan.stop_after,
        "trace": plan.trace,
    }


def _check_script(script: str) -> None:
    """Refuse notebooks, programs and scripts in other languages."""
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
    first = head.split(b"\n", 1)[0]
    if path.suffix == ".ipynb":
        raise CaptureError(
            f"{script} is a notebook: convert it first with `jupyter nbconvert --to script {script}`."
        )
    if b"\0" in head or (first.startswith(b"#!") and b"python" not in first):
        raise CaptureError(
            f"{script} is not a Python script: name the training script, or run it as a command with "
            f"`tfdoctor profile -- {script}`."
        )
