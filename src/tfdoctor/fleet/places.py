"""Finds the recordings below folders, URLs and patterns of these: what a worker needs to examine one."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.utils import glob_translate

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, SAMPLES, TRACE
from tfdoctor.recording.folders import PROCESSES, WORKERS
from tfdoctor.remote.fetching import chosen
from tfdoctor.remote.filesystem import READ, Remote, is_url, opened
from tfdoctor.rulebook.config import Config
from tfdoctor.stored.files import NAMES
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record, common

MAGIC = re.compile(r"[*?\\[]")  # What makes a path a pattern
MARKS = frozenset((MANIFEST, PROGRAM, SAMPLES))  # Files whose folder is a recording
REPORTS = (".json", ".json.gz")  # How a place ends that means reports instead of recordings
RUNS_OF = "/plugins/profile"  # Where TensorBoard keeps run folders, below a log directory
INNER = (WORKERS, PROCESSES)  # Folders inside a recording that hold those of single processes
# A folder that is named by a date or a number, and not by its program.
DATED = re.compile(r"(attempt|exp|experiment|run|trial|try|v|version)?[-_]?\d[\d_.:T-]*", re.IGNORECASE)
PARTS = 2  # Folders in the name of a job
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
        return _sha256(self.place)

    @property
    def shown(self) -> str:
        """The place as text: a name on a disk may be any bytes."""
        return self.place.encode(errors="backslashreplace").decode()


class FleetPlan(Record, kw_only=True):
    """How to examine recordings, and where."""

    config: Config
    settings: str  # SHA-256 of what the diagnosis depends on besides the files: see `settings_of`
    timeout_s: float
    memory_bytes: int | None = None  # None: a fair part of the machine that the worker runs on
    scrubbed: bool = False
    pages: bool = True  # write the HTML reports
    scheduler: str = ""  # "": this machine
    workers: int = 1  # of this machine
    local: bool = True  # the table is in a folder of this machine and not at a URL: so are its pages


class RecordingJob(Record, kw_only=True):
    """A recording to examine, and how."""

    found: FoundRecording
    plan: FleetPlan
    known: tuple[str, ...] = ()  # digests that need no diagnosis again
    version: str = __version__  # of tfdoctor, where the job was made

    def row(self, digest: str = "", failure: str = "", error: str = "") -> FleetRun:
        """Return the row of the recording, without what its diagnosis says."""
        own = {"place": self.found.shown, "settings": self.plan.settings}
        return common(FleetRun, self.found, digest=digest, failure=failure, error=error, **own)

    def failed(self, failure: Failure, error: str, digest: str = "") -> "ExaminedRecording":
        """Return the row of a recording that has no diagnosis."""
        return ExaminedRecording(self.row(digest, failure.value, error))


class ExaminedRecording(Record):
    """The row of a recording, and its page; of one whose digest is known only place and digest count."""

    run: FleetRun
    page: str = ""
    known: bool = False


def found(patterns: Iterable[str]) -> tuple[tuple[FoundRecording, ...], tuple[str, ...]]:
    """Return the recordings at paths, URLs and patterns, each once, by place; and where there was none.

    Raises:
        InputError: one of them cannot be read or does not exist, or all have no recording.
    """
    of_patterns = {pattern: {one.place: one for one in _found(pattern)} for pattern in patterns}
    empty = [pattern for pattern, at in of_patterns.items() if not at]
    places = {place: one for at in of_patterns.values() for place, one in at.items()}
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
    for root, names in {**known, **dict.fromkeys(_stored(infos, known, path), ("",))}.items():
        # A pattern means a recording by its root, a file of it, or a folder between them or above.
        own = [PurePosixPath(root, name) for name in names]
        parents = (parent for file in own for parent in file.parents)
        if not any(wanted.fullmatch(str(at)) for at in {*own, *parents}):
            continue
        told = [infos[f"{root}/{name}" if name else root] for name in names]
        signs = [[str(info[sign]) for sign in CHANGES if info.get(sign)] for info in told]
        sizes = [info.get("size") for info in told]
        stamp = _sha256(repr([*zip(names, sizes, signs, strict=True)])) if all(signs) else ""
        whole = place.filesystem.unstrip_protocol(root) if is_url(place.url) and not scheme else scheme + root
        yield FoundRecording(whole, names, sum(size or 0 for size in sizes), stamp)


def _files(place: Remote, path: str) -> Mapping[str, Any]:
    if not is_url(place.url):
        return dict(_on_disk(path))
    infos: dict[str, Any] = place.attempt(READ, lambda: place.filesystem.find(path, detail=True))
    # No pipes: reading one would block.
    return {name.rstrip("/"): info for name, info in infos.items() if info.get("type", "file") == "file"}


def _on_disk(path: str) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the files below a folder, also behind links to folders that are neither below nor above it."""
    yield from _signs("", [path])
    folders, seen = [path], set(map(str, Path(path).resolve().parents))
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


def _stored(paths: Iterable[str], recorded: Iterable[str], pattern: str) -> Iterator[str]:
    """Yield the stored reports in folders that neither are, nor lie above or in, one of these recordings.

    And those that the last part of a path or a pattern means, also in a recording's folder.
    """
    roots = {PurePosixPath(root) for root in recorded}
    above = {folder for root in roots for folder in (root, *root.parents)}
    last, exact = PurePosixPath(pattern).name.lower(), None if MAGIC.search(pattern) else pattern
    by_name = last.endswith(REPORTS) and last not in MARKS | {AGENT}
    for path in paths:
        file = PurePosixPath(path)
        apart = file.name in NAMES and file.parent not in above and not roots & set(file.parents)
        if apart or (by_name and (path == exact or file.name.endswith(NAMES))):
            yield path


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def title(place: str) -> str:
    """Return a short name of a recording: its folder, without those that TensorBoard adds."""
    return (_folders(place) or [place])[-1]


def job(place: str, script: str) -> str:
    """Return the name of a job: its script, or the last folders of its place that are not named by a date."""
    named = [part for part in _folders(place) if not DATED.fullmatch(part)]
    return script or "/".join(named[-PARTS:]) or place


def _folders(place: str) -> list[str]:
    _, _, path = place.rpartition("://")
    parts = list(PurePosixPath(path).parts)
    if parts and parts[-1].endswith((".pb", *NAMES)):
        parts = parts[:-1]
    if len(parts) > PARTS and parts[-2] == "profile":
        parts = parts[: -3 if parts[-3] == "plugins" else -2]
    return [part for part in parts if part != "/"]
