"""Where a run is recorded: a folder of its own, or a worker's in a folder that a job shares."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tfdoctor.capture.agent.rank import rank
from tfdoctor.capture.plan import Plan
from tfdoctor.errors import NotEmptyError, OutputError
from tfdoctor.recording import MANIFEST
from tfdoctor.recording.agent import WorkerRank
from tfdoctor.recording.processes import PROCESSES
from tfdoctor.recording.workers import WORKERS


@dataclass(frozen=True, slots=True)
class Folder:
    """The recording's folder; `shared` is that of the whole job when this is one worker's."""

    out: Path
    shared: Path | None = None
    worker: WorkerRank | None = None

    @property
    def processes(self) -> Path:
        """Where each Python process of the run leaves what it has."""
        return self.out / PROCESSES

    def drop(self) -> None:
        """Remove a recording that never began, and nothing else."""
        for path in (self.processes, self.out):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def claim(plan: Plan) -> Folder:
    """Create the recording's folder; a recording is never overwritten.

    Raises:
        OutputError: it cannot be written, or something is there already.
    """
    found = rank(os.environ) if plan.out else None
    worker = WorkerRank(**found) if found else None
    stamp = time.strftime("%Y%m%d-%H%M%S")
    out = plan.out or Path("runs", f"{plan.name}-{stamp}")
    try:
        folder = _workers(out, worker) if worker else _sole(out)
        folder.processes.mkdir()
        probe = folder.processes / "probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        # All folders above were made: no path is missing, the file system takes none.
        absent = isinstance(error, FileNotFoundError)
        why = "a folder cannot be created there" if absent else error.strerror
        raise OutputError(f"{out} cannot be written ({why}): choose another folder.") from error
    return folder


def _sole(out: Path) -> Folder:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NotEmptyError(f"{out} is not empty: choose another folder, or remove it first.")
    out.mkdir(parents=True, exist_ok=True)
    return Folder(out.resolve())


def _workers(shared: Path, worker: WorkerRank) -> Folder:
    """Take a worker's place among the others, who do the same at the same moment."""
    if shared.exists() and not shared.is_dir():
        raise OutputError(f"{shared} is a file: choose another folder.")
    own = shared / WORKERS / worker.name
    taken = own.is_dir() and any(own.iterdir())
    foreign = (shared / MANIFEST).exists()
    if taken or foreign:
        raise NotEmptyError(
            f"{own if taken else shared} is not empty: choose another folder, or remove it first."
        )
    own.mkdir(parents=True, exist_ok=True)
    return Folder(own.resolve(), shared.resolve(), worker)
