"""Fetches what a report needs of a recording at a URL."""

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePosixPath

from tfdoctor.recording import folders
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, SAMPLES, TRACE, Notes
from tfdoctor.recording.worker_log import WORKER_LOG
from tfdoctor.remote.filesystem import READ, opened
from tfdoctor.terms.errors import InputError

TRIALS = "trials.json"

OF_RECORDING = frozenset((MANIFEST, PROGRAM, SAMPLES, AGENT, TRIALS, WORKER_LOG, *folders.RUN_FILES))
FILES = (TRACE, ".json", ".html", ".htm", ".pb", ".gz")  # How the names of files end that are read by themselves
_COPIES: dict[Path, str] = {}  # The URLs of the copies that this command has made


def is_copy(path: Path) -> bool:
    """Say whether a path is that of a copy, which goes away when the command ends."""
    return any(path.is_relative_to(folder) for folder in _COPIES)


def shown(message: str) -> str:
    """Return a message with the URLs in place of their copies."""
    for folder, url in _COPIES.items():
        for copy in sorted(map(str, folder.iterdir()) if folder.is_dir() else (), reverse=True):
            message = message.replace(copy, url)
    return message


def fetched(url: str, *, alone: bool = False) -> Path:
    """Return a copy of the recording or the file at a URL, in a temporary folder, under its own name.

    What is to be a file ``alone`` is taken for one. Of a folder above several recordings, or of a log directory
    with several runs, the newest is copied.

    Raises:
        InputError: it cannot be read, or has no trace.
    """
    place, folder = opened(url), Path(tempfile.mkdtemp(prefix="tfdoctor-"))
    _COPIES[folder] = url.rstrip("/")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # A web server shows a folder as a page, so there a file is known by its name.
    named, is_file = place.name.endswith(FILES), partial(place.filesystem.isfile, place.path)
    if alone or (named if place.is_web else place.attempt(READ, is_file)):
        return fetched_files(url, [""], folder)
    found: list[str] = place.attempt(READ, lambda: place.filesystem.find(place.path))
    if not found and not place.exists():
        raise InputError(f"There is nothing at {url}: check the address.")
    root, copy = place.path.rstrip("/"), folder / place.name
    files = {path.removeprefix(root).lstrip("/"): path for path in found if path.startswith(f"{root}/")}
    for manifest in (file for file in files if PurePosixPath(file).name == MANIFEST):
        place.copied(files[manifest], folder, f"{copy.name}/{manifest}")
    newest = folders.newest(copy, Notes()) if copy.exists() else copy
    names = [file for file in files if (copy / file).is_relative_to(newest)]
    job, _, worker = root.rpartition(f"/{folders.WORKERS}/")
    if job and "/" not in worker:  # its trace lies with those of the other workers
        shared = place.attempt(READ, lambda: place.filesystem.glob(f"{job}/{RUNS}/{worker}{TRACE}"))
        files |= (own := {path.removeprefix(job).lstrip("/"): path for path in shared})
        names += own
    wanted = chosen(names)
    if not wanted:
        raise InputError(
            f"No trace under {url}: expected plugins/profile/<run>/<host>.xplane.pb; record one with "
            "`tfdoctor profile`."
        )
    for relative in wanted:
        place.copied(files[relative], folder, f"{copy.name}/{relative}")
    return copy


def fetched_files(url: str, files: Iterable[str], folder: Path) -> Path:
    """Return a copy, in a folder, of these files below a URL; of the file at the URL where its name is "".

    Raises:
        InputError: one cannot be read.
    """
    place = opened(url)
    root = place.path.rstrip("/")
    for relative in files:
        place.copied(f"{root}/{relative}" if relative else root, folder, f"{place.name}/{relative}")
    return folder / place.name


def chosen(files: Iterable[str]) -> tuple[str, ...]:
    """Return the files of a recording, with the newest trace of each worker; else the traces of the newest run.

    Workers on several machines name the run after the time at which each ended.
    """
    paths = [PurePosixPath(file) for file in files]
    own = [path for path in paths if path.name in OF_RECORDING]

    def worker(trace: PurePosixPath) -> tuple[PurePosixPath, str] | None:
        log = trace.parents[3] if len(trace.parents) > 3 else trace.parent  # noqa: PLR2004 - plugins/profile/RUN
        return (log, trace.name) if own else None

    traces = sorted((path for path in paths if path.name.endswith(TRACE)), key=lambda trace: trace.parent.name)
    newest = {worker(trace): trace.parent.name for trace in traces}  # runs are named by date
    return (*map(str, own), *(str(trace) for trace in traces if trace.parent.name == newest[worker(trace)]))
