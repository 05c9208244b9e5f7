"""Fetches what a report needs of a recording at a URL."""

import atexit
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, SAMPLES, Notes
from tfdoctor.recording.locate import newest as newest_of
from tfdoctor.recording.processes import RUN_FILES, WORKERS
from tfdoctor.remote.filesystem import READ, Remote, opened
from tfdoctor.terms.errors import InputError

TRIALS = "trials.json"

# Of one file: a server may send without end, and larger traces need more memory than most machines have.
MOST_BYTES = 8 * 2**30
# A server may also never come to an end of a small file: seconds for its start, and bytes in each after that.
PATIENCE_S, SLOWEST = 60.0, 10_000

OF_RECORDING = frozenset((MANIFEST, PROGRAM, SAMPLES, AGENT, TRIALS, *RUN_FILES))
TRACE = ".xplane.pb"
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


def fetched_file(url: str) -> Path:
    """Return a copy of the file at a URL, in a temporary folder, under its own name.

    Raises:
        InputError: it cannot be read.
    """
    place = opened(url)
    return _copied(place, place.path, _folder(url), PurePosixPath(place.path).name or "file")


def fetched(url: str) -> Path:
    """Return a copy of the file or the recording at a URL, in a temporary folder, under its own name.

    Of a folder above several recordings, or of a log directory with several runs, the newest is copied.

    Raises:
        InputError: it cannot be read, or has no trace.
    """
    place = opened(url)
    folder = _folder(url)
    root = place.path.rstrip("/")
    name = PurePosixPath(root).name or "recording"
    # A web server shows a folder as a page, so there a file is known by its name.
    if name.endswith(FILES) if place.is_web else place.attempt(READ, lambda: place.filesystem.isfile(place.path)):
        return _copied(place, place.path, folder, name)
    found: list[str] = place.attempt(READ, lambda: place.filesystem.find(place.path))
    if not found and not place.exists():
        raise InputError(f"There is nothing at {url}: check the address.")
    files = {path.removeprefix(root).lstrip("/"): path for path in found if path.startswith(f"{root}/")}
    newest = _of_newest(place, files, folder / name)
    shared = _shared_trace(place, root)
    files |= shared
    wanted = [*chosen([*newest, *shared])]
    if not wanted:
        raise InputError(
            f"No trace under {url}: expected plugins/profile/<run>/<host>.xplane.pb; record one with "
            "`tfdoctor profile`."
        )
    for relative in wanted:
        _copied(place, files[relative], folder, f"{name}/{relative}")
    return folder / name


def _shared_trace(place: Remote, root: str) -> dict[str, str]:
    """Return the trace of one worker of a job, which lies with those of the other workers, as if it was its own."""
    job, _, worker = root.rpartition(f"/{WORKERS}/")
    if not job or "/" in worker:
        return {}
    found = place.attempt(READ, lambda: place.filesystem.glob(f"{job}/{RUNS}/{worker}{TRACE}"))
    return {path.removeprefix(job).lstrip("/"): path for path in found}


def _of_newest(place: Remote, files: Mapping[str, str], copy: Path) -> list[str]:
    """Return the files of the newest of several recordings; all files, if one was named."""
    for manifest in (file for file in files if PurePosixPath(file).name == MANIFEST):
        _copied(place, files[manifest], copy.parent, f"{copy.name}/{manifest}")
    newest = newest_of(copy, Notes()) if copy.exists() else copy
    return [file for file in files if (copy / file).is_relative_to(newest)]


def fetched_files(url: str, files: Iterable[str], folder: Path) -> Path:
    """Return a copy, in a folder, of these files below a URL; of the file at the URL where its name is "".

    Raises:
        InputError: one cannot be read.
    """
    place = opened(url)
    root = place.path.rstrip("/")
    name = PurePosixPath(root).name or "recording"
    for relative in files:
        path = f"{root}/{relative}" if relative else root
        _copied(place, path, folder, f"{name}/{relative}")
    return folder / name


def _folder(url: str) -> Path:
    """Return a new folder for a copy of what is at a URL."""
    folder = Path(tempfile.mkdtemp(prefix="tfdoctor-"))
    _COPIES[folder] = url.rstrip("/")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def chosen(files: Iterable[str]) -> Iterator[str]:
    """Yield the files of a recording, with the newest trace of each worker; else the traces of the newest run.

    Workers on several machines name the run after the time at which each ended.
    """
    paths = [PurePosixPath(file) for file in files]
    own = [path for path in paths if path.name in OF_RECORDING]
    yield from map(str, own)
    traces = [path for path in paths if path.name.endswith(TRACE)]
    alternatives: dict[tuple[PurePosixPath, str], list[PurePosixPath]] = {}
    for path in traces:
        log = path.parents[3] if len(path.parents) > 3 else path.parent  # noqa: PLR2004 - plugins/profile/RUN
        key = (log, path.name) if own else (PurePosixPath(), "")
        alternatives.setdefault(key, []).append(path)
    for runs in alternatives.values():
        newest = max(path.parent.name for path in runs)  # runs are named by date
        yield from (str(path) for path in runs if path.parent.name == newest)


def _copied(place: Remote, path: str, folder: Path, name: str) -> Path:
    """Copy a file into a folder, under a name that may have folders in it, and check that all of it came.

    Raises:
        InputError: it cannot be read, is too large or too slow, or its name leads out of the folder.
    """
    from fsspec.callbacks import Callback  # noqa: PLC0415 - only for URLs

    parts = PureWindowsPath(name)  # both kinds of slashes, and drives, on every machine
    if parts.anchor or ".." in parts.parts:
        raise InputError(f"{place.url} lists {path!r}, which lies outside of it: name the recording itself.")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)

    def copy() -> None:
        begun = time.monotonic()

        def count(size: int | None, copied: int, **_: object) -> None:
            if time.monotonic() - begun > PATIENCE_S + copied / SLOWEST:
                raise OSError(f"it comes at less than {SLOWEST // 1000} kB a second")
            if max(size or 0, copied) > MOST_BYTES:
                raise OSError(f"it has more than {MOST_BYTES // 2**30} GB")

        place.filesystem.get_file(path, str(target), callback=Callback(hooks={"count": count}))
        size = place.filesystem.size(path)
        if size is not None and size != target.stat().st_size:
            raise OSError(f"{target.stat().st_size:,} of {size:,} bytes came")

    place.attempt(READ, copy)
    return target
