"""The workers of a run: a recording each below `workers`, and their traces together as one run."""

import shlex
from pathlib import Path

from tfdoctor.recording.files import MANIFEST, RUNS, json_object
from tfdoctor.recording.manifest import Manifest, WorkerRank
from tfdoctor.recording.notes import Notes

WORKERS = "workers"

NAMED = 8
"""Workers that a note names; the report has all."""


def of(path: Path) -> tuple[Path, ...]:
    """Return the recordings of all workers of a run, the chief first; none when it had one process."""
    return tuple(
        sorted((found.parent for found in path.glob(f"{WORKERS}/*/{MANIFEST}")), key=_order)
    )


def _order(folder: Path) -> tuple[float, int, str]:
    worker = Manifest.from_json(json_object(folder / MANIFEST, Notes())).worker or WorkerRank()
    return (float("inf") if worker.rank is None else worker.rank, worker.place or 0, folder.name)


def is_one(path: Path) -> bool:
    """Say whether a folder is the recording of one worker among several."""
    return path.absolute().parent.name == WORKERS


def traces(path: Path) -> tuple[Path, ...]:
    """Return a worker's trace, which lies among those of the others in the newest run."""
    path = path.absolute()
    found = path.parent.parent.glob(f"{RUNS}/{path.name}.*")
    return tuple(sorted((trace for trace in found if _trace(trace, path.name)), reverse=True)[:1])


def _trace(path: Path, worker: str) -> bool:
    return path.name == f"{worker}.xplane.pb" and path.is_file()


def note(path: Path, found: tuple[Path, ...]) -> str:
    """Say that there are several, and how to see each of them alone."""
    names = [worker.name for worker in found]
    rest = ", …" if len(names) > NAMED else ""
    places = shlex.quote(str(path / WORKERS / names[1]))
    return (
        f"{len(found)} workers were recorded and are compared; to report on one worker: "
        f"`tfdoctor report {places}` ({', '.join(names[:NAMED])}{rest})"
    )
