"""Finds the recordings below folders, URLs and patterns of these."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.utils import glob_translate

from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, SAMPLES
from tfdoctor.recording.folders import PROCESSES, WORKERS
from tfdoctor.remote.fetching import TRACE, chosen
from tfdoctor.remote.filesystem import READ, Remote, is_url, opened
from tfdoctor.stored.files import NAMES
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record

MAGIC = re.compile(r"[*?\\[]")  # What makes a path a pattern
MARKS = frozenset((MANIFEST, PROGRAM, SAMPLES))  # Files whose folder is a recording
REPORTS = (".json", ".json.gz")  # How a place ends that means reports instead of recordings
RUNS_OF = "/plugins/profile"  # Where TensorBoard keeps run folders, below a log directory
INNER = (WORKERS, PROCESSES)  # Folders inside a recording that hold those of single processes
# What filesystems say of a file that changes with its content.
CHANGES = ("ETag", "etag", "generation", "content_md5", "mtime", "LastModified", "last_modified")


class FoundRecording(Record):
    """A recording that was found: its path or URL, and its files, relative to it ("": it is one file)."""

    place: str
    files: tuple[str, ...]
    nbytes: int
    stamp: str  # "" where the filesystem tells nothing that changes with the files

    @property
    def key(self) -> str:
        """SHA-256 of the place."""
        return hashlib.sha256(self.place.encode(errors="surrogateescape")).hexdigest()

    @property
    def shown(self) -> str:
        """The place as text: a name on a disk may be any bytes."""
        return self.place.encode(errors="backslashreplace").decode()


def found(patterns: Iterable[str]) -> tuple[tuple[FoundRecording, ...], tuple[str, ...]]:
    """Return the recordings at paths, URLs and patterns, each once, by place; and where there was none.

    Raises:
        InputError: one of them cannot be read or does not exist, or all have no recording.
    """
    places: dict[str, FoundRecording] = {}
    empty = []
    for pattern in patterns:
        at = {one.place: one for one in _found(pattern)}
        places |= at
        empty += [] if at else [pattern]
    if not places:
        raise InputError(
            f"No recording at {', '.join(empty)}: name a folder above recordings or TensorBoard log directories, "
            "a report.json, or a pattern in quotes, such as 'runs/**'."
        )
    return tuple(places[place] for place in sorted(places)), tuple(empty)


def _found(pattern: str) -> Iterator[FoundRecording]:
    # A path is taken from the root, without links resolved: a pattern means what it says.
    place = opened(pattern if is_url(pattern) else os.path.normpath(Path(pattern).expanduser().absolute()))
    scheme = place.path[: place.path.find("://") + 3] if place.is_web else ""
    path = place.path.removeprefix(scheme).rstrip("/").removesuffix(f"/{MANIFEST}")
    exists = place.exists()
    is_pattern = bool(MAGIC.search(path)) and not exists  # a folder may have brackets in its name
    if not exists and not is_pattern:
        raise InputError(f"There is nothing at {pattern}: check the path.")
    # Above a pattern, and above run folders, which may belong to a recording.
    above = MAGIC.split(path)[0].rpartition("/")[0] if is_pattern else path
    files = _files(place, scheme + (above.partition(RUNS_OF)[0] or above))
    infos = {name.removeprefix(scheme): info for name, info in files.items()}
    wanted = re.compile(glob_translate(path) if is_pattern else re.escape(path))
    known = recordings(infos)
    stored = [*_reports(infos, known), *_named(infos, path)]
    for root, names in {**known, **dict.fromkeys(stored, ("",))}.items():
        # A pattern means a recording by its root, a file of it, or a folder between them or above.
        own = [PurePosixPath(root, name) for name in names]
        if any(wanted.fullmatch(str(at)) for at in {*own, *(parent for file in own for parent in file.parents)}):
            yield _described(place, scheme, root, names, infos)


def _files(place: Remote, path: str) -> Mapping[str, Any]:
    """Return what the filesystem says of each file below a path."""
    if not is_url(place.url):
        return dict(_on_disk(path))
    infos: dict[str, Any] = place.attempt(READ, lambda: place.filesystem.find(path, detail=True))
    # No pipes: reading one would block.
    return {name.rstrip("/"): info for name, info in infos.items() if info.get("type", "file") == "file"}


def _on_disk(path: str) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the files below a folder, also behind links to folders that are neither below nor above it."""
    yield from _signs("", [path])
    above = {os.path.realpath(path), *map(str, Path(path).resolve().parents)}
    folders, seen = [path], set[str]()
    while folders:
        for folder, below, names in os.walk(folders.pop(0)):
            real = os.path.realpath(folder)
            if real in seen:
                below.clear()
                continue
            seen.add(real)
            yield from _signs(folder, names)
            links = (Path(folder, name) for name in below)
            folders += [str(link) for link in links if link.is_symlink()]
        reals = {folder: os.path.realpath(folder) for folder in folders}
        folders = [folder for folder in folders if reals[folder] not in seen | above]


def _signs(folder: str, names: Iterable[str]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield what changes with each file; a file may go meanwhile, and what is no file is left out."""
    for name in names:
        file = os.path.join(folder, name)  # noqa: PTH118 - faster, for folders with many files
        with suppress(OSError):
            known = os.stat(file)  # noqa: PTH116 - same
            if stat.S_ISREG(known.st_mode):
                yield file, {"size": known.st_size, "mtime": known.st_mtime}


def recordings(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the roots of the recordings among these files, each with its files, relative to it.

    A root is the nearest folder of a recording, or else a run folder of TensorBoard, or else one trace file with
    the name "". Stored reports are apart.
    """
    own = [PurePosixPath(path) for path in paths]
    folders = [path.parent for path in own if path.name in MARKS | {AGENT}]
    marked = {folder.parent.parent if folder.parent.name in INNER else folder for folder in folders}
    files: dict[PurePosixPath, list[str]] = {}
    for path in own:
        root = next((parent for parent in path.parents if parent in marked), None)
        if root is None and path.name.endswith(TRACE):
            root = path.parent if path.parent.parent.name == "profile" else path
        if root is not None:
            files.setdefault(root, []).append("" if root == path else str(path.relative_to(root)))
    picked = {root: tuple(sorted(chosen(names) if names != [""] else names)) for root, names in files.items()}
    return {str(root): names for root, names in picked.items() if names}


def _reports(paths: Iterable[str], roots: Iterable[str]) -> list[str]:
    """Return the stored reports in folders that neither are, nor lie above or in, one of these recordings."""
    own = {PurePosixPath(root) for root in roots}
    above = {folder for root in own for folder in (root, *root.parents)}
    files = (PurePosixPath(path) for path in paths)
    stored = (file for file in files if file.name in NAMES and file.parent not in above)
    return [str(file) for file in stored if not own & set(file.parents)]


def _named(paths: Iterable[str], pattern: str) -> list[str]:
    """Return the reports that the last part of a path or a pattern means, also those in a recording's folder."""
    last = PurePosixPath(pattern).name.lower()
    if not last.endswith(REPORTS) or last in MARKS | {AGENT}:
        return []
    exact = None if MAGIC.search(pattern) else pattern
    return [path for path in paths if path == exact or PurePosixPath(path).name.endswith(NAMES)]


def _described(
    place: Remote, scheme: str, root: str, files: tuple[str, ...], infos: Mapping[str, Any]
) -> FoundRecording:
    known = [infos[f"{root}/{file}" if file else root] for file in files]
    signs = [[str(info[sign]) for sign in CHANGES if info.get(sign)] for info in known]
    sizes = [info.get("size") for info in known]
    stamp = repr([*zip(files, sizes, signs, strict=True)]) if all(signs) else ""
    name = scheme + root
    if is_url(place.url) and not scheme:
        name = place.filesystem.unstrip_protocol(root)
    return FoundRecording(
        name, files, sum(size or 0 for size in sizes), hashlib.sha256(stamp.encode()).hexdigest() if stamp else ""
    )
