"""Creates the folder of a recording: its own, or a worker's below the folder that a job shares."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tfdoctor.capture.agent.process.rank import rank
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import MANIFEST
from tfdoctor.recording.agent import WorkerRank
from tfdoctor.recording.folders import PROCESSES, WORKERS
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import NotEmptyError, OutputError

MOST_LETTERS = 50  # Of a script's name in that of a folder, which has at most 255 bytes


@dataclass(frozen=True, slots=True)
class Folder:
    """The recording's folder; `shared` is that of the whole job when this is one worker's."""

    out: Path
    shared: Path | None = None
    worker: WorkerRank | None = None

    @property
    def processes(self) -> Path:
        """Where each Python process of the run writes its files."""
        return self.out / PROCESSES

    def drop(self) -> None:
        """Remove the empty folders of a recording that never began."""
        for path in (self.processes, self.out):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def claim(plan: Plan) -> Folder:
    """Create the recording's folder; a recording is never overwritten.

    Raises:
        OutputError: it cannot be written, or something is there already.
        InputError: it belongs at a URL that cannot be read.
    """
    ranks = rank(os.environ) if plan.out else None
    worker = WorkerRank(**ranks) if ranks else None
    out = plan.out or Path("runs")
    UPLOADS.must_lack((out / WORKERS / worker.name if worker else out) / MANIFEST)
    try:
        out = plan.out or new_run(plan.name)
        folder = _workers(out, worker) if worker else _single(out)
        folder.processes.mkdir()
        probe = folder.processes / "probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        # The parent folders were created, so nothing is missing: the file system refuses new folders.
        refused = isinstance(error, FileNotFoundError)
        why = "a folder cannot be created there" if refused else error.strerror
        raise OutputError(f"{out} cannot be written ({why}): choose another folder.") from error
    return folder


def new_run(name: str) -> Path:
    """Create a folder for a run below ``runs``, named after the time; of several in one second, each has its own.

    Raises:
        OSError: it cannot be created.
    """
    runs, number = Path("runs"), 1
    runs.mkdir(exist_ok=True)
    named = f"{name[:MOST_LETTERS]}-{time.strftime('%Y%m%d-%H%M%S')}"
    while True:
        folder = runs / (f"{named}-{number}" if number > 1 else named)
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _single(out: Path) -> Folder:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NotEmptyError(f"{out} is not empty: choose another folder, or remove it first.")
    out.mkdir(parents=True, exist_ok=True)
    return Folder(out.resolve())


def _workers(shared: Path, worker: WorkerRank) -> Folder:
    """Create a worker's folder; the other workers create theirs at the same moment."""
    if shared.exists() and not shared.is_dir():
        raise OutputError(f"{shared} is a file: choose another folder.")
    own = shared / WORKERS / worker.name
    occupied = own.is_dir() and any(own.iterdir())
    other_run = (shared / MANIFEST).exists()
    if occupied or other_run:
        raise NotEmptyError(
            f"{own if occupied else shared} is not empty: choose another folder, or remove it first."
        )
    own.mkdir(parents=True, exist_ok=True)
    return Folder(own.resolve(), shared.resolve(), worker)
