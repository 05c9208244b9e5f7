"""The workers of a run: each has a recording below `workers`; their traces lie in one run folder."""

import shlex
from pathlib import Path

from tfdoctor.recording.files import MANIFEST, RUNS, json_object
from tfdoctor.recording.manifest import Manifest, WorkerRank
from tfdoctor.recording.notes import Notes
from tfdoctor.terms.files import is_below

WORKERS = "workers"

NAMED = 8  # How many workers a note names; the report lists all


def of(path: Path) -> tuple[Path, ...]:
    """Return the recordings of all workers of a run, the chief first; none if it had one process."""
    manifests = path.glob(f"{WORKERS}/*/{MANIFEST}")
    return tuple(sorted((one.parent for one in manifests if is_below(one, path)), key=_order))


def _order(folder: Path) -> tuple[float, int, str]:
    worker = Manifest.from_json(json_object(folder / MANIFEST, Notes())).worker or WorkerRank()
    return (float("inf") if worker.rank is None else worker.rank, worker.place or 0, folder.name)


def is_one(path: Path) -> bool:
    """Return whether a folder is the recording of one of several workers."""
    return path.absolute().parent.name == WORKERS


def traces(path: Path) -> tuple[Path, ...]:
    """Return a worker's trace, which lies in the newest run folder with those of the other workers."""
    path = path.absolute()
    files = path.parent.parent.glob(f"{RUNS}/{path.name}.*")
    return tuple(sorted((trace for trace in files if _trace(trace, path.name)), reverse=True)[:1])


def _trace(path: Path, worker: str) -> bool:
    return path.name == f"{worker}.xplane.pb" and path.is_file()


def note(path: Path, folders: tuple[Path, ...]) -> str:
    """Return the note that there are several workers, and how to see one alone."""
    names = [worker.name for worker in folders]
    rest = ", …" if len(names) > NAMED else ""
    example = shlex.quote(str(path / WORKERS / names[1]))
    return (
        f"{len(folders)} workers were recorded and are compared; to report on one worker: "
        f"`tfdoctor report {example}` ({', '.join(names[:NAMED])}{rest})"
    )
