"""A folder above recordings: its newest recording is opened, and a note says which, and how to open another."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tfdoctor.recording.files import MANIFEST, RUNS, json_object, traces
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.workers import WORKERS

# Folders between a log directory and its runs: logs/fit/<time>/plugins/profile/<run>. Recordings lie as deep.
DEPTH = 2
# How profilers name a run folder, by the machine's own time.
RUN = re.compile(r"(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)")
# The manifest of a recording, and those of its workers where it has no other.
MARKS = (MANIFEST, f"{WORKERS}/*/{MANIFEST}")


def newest(path: Path, notes: Notes) -> Path:
    """Return the newest recording below a folder; the path itself if it is a recording, or has none below it.

    A recording precedes runs of TensorBoard, which hold only a part of what it holds.
    """
    found = [] if any(next(path.glob(mark), None) for mark in MARKS) else _recordings(path)
    if not found:
        return path
    alone = [run for run in runs(path) if not set(found) & set(run.parents)]
    if len(found) + len(alone) > 1:
        notes.add(_note(path, found, alone))
    return found[-1]


def _recordings(path: Path) -> list[Path]:
    """Return the recordings below a folder, the newest last; what lies in a recording is a part of it."""
    patterns = [f"{'*/' * depth}{mark}" for depth in range(1, DEPTH + 1) for mark in MARKS]
    marks = (file for pattern in patterns for file in path.glob(pattern) if _is_manifest(file))
    outer = sorted({_outer(file.parent) for file in marks}, reverse=True)
    folders = set({folder.resolve(): folder for folder in outer}.values())  # a link is no other
    return sorted((one for one in folders if not folders & set(one.parents)), key=_time)


def _is_manifest(file: Path) -> bool:
    """Say whether a manifest can be read: a damaged one hides no good run beside it."""
    return bool(json_object(file, Notes()))


def _outer(folder: Path) -> Path:
    """Return the recording that a worker's folder belongs to."""
    return folder.parent.parent if folder.parent.name == WORKERS else folder


def _time(folder: Path) -> tuple[int, str, str]:
    """Return when a recording was made, by its manifest: the times of files do not survive copying."""
    files = [file for mark in MARKS for file in folder.glob(mark)]
    manifests = [Manifest.from_json(json_object(file, Notes())) for file in files]
    recorded = max(manifest.recorded_unix_ns for manifest in manifests)
    return recorded, folder.name, str(folder)


def runs(path: Path) -> list[Path]:
    """Return the run folders of TensorBoard below a folder, the newest last."""
    patterns = [f"{'*/' * depth}{RUNS}" for depth in range(DEPTH + 1)]
    for start, below in (("plugins", "profile/*"), ("profile", "*")):  # inside a log directory
        if path.name == start:
            patterns.append(below)
    found = {run for pattern in patterns for run in path.glob(pattern) if traces(run)}
    # Runs are named by date; unlike the times of files, names survive copying.
    return sorted(found, key=lambda run: (run.name, str(run)))


def _note(path: Path, found: list[Path], alone: list[Path]) -> str:
    kinds = [_counted(found, "recording"), *([_counted(alone, "TensorBoard run")] if alone else [])]
    newer = f"; {_within(path, alone[-1])} is newer and is only a trace" if _later(found, alone) else ""
    other = (found[:-1] or alone)[-1]
    return (
        f"{' and '.join(kinds)} found: the newest recording, {_within(path, found[-1])}, is shown{newer}; "
        f"to see another, name it: {shlex.quote(str(other))}"
    )


def _counted(folders: list[Path], noun: str) -> str:
    return f"{len(folders)} {noun}{'' if len(folders) == 1 else 's'}"


def _within(path: Path, folder: Path) -> str:
    return folder.relative_to(path).as_posix() if folder.is_relative_to(path) else str(folder)


def _later(found: list[Path], alone: list[Path]) -> bool:
    """Say whether the newest run is later than the newest recording, if their run folders are named by date."""
    shown = max(_dated(found[-1].glob(RUNS)), default="")
    return bool(shown) and max(_dated(iter(alone)), default="") > shown


def _dated(folders: Iterator[Path]) -> Iterator[str]:
    return (folder.name for folder in folders if RUN.fullmatch(folder.name))
