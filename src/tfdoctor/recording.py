"""A recording on disk: what was run, its traces, what it built, and the samples beside it.

Left of this module is TensorFlow; right of it are only bytes. A TensorBoard log directory, one of
its run folders and a single `*.xplane.pb` are recordings too, which merely carry less.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tfdoctor.errors import InputError
from tfdoctor.manifest import SCHEMA, Host, Json, Manifest, fold

__all__ = ["GUEST", "MANIFEST", "PROGRAM", "SAMPLES", "Host", "Manifest", "Recording"]

MANIFEST, PROGRAM, SAMPLES, GUEST = (
    "tfdoctor.json",
    "program.json.gz",
    "samples.jsonl",
    "guest.json",
)
TRACES = "*.xplane.pb"

DEPTH = 2
"""How far below a log directory its runs may lie: logs/fit/<time>/plugins/profile/<run>."""


@dataclass(frozen=True)
class Recording:
    """What there is to read; `notes` says what was passed over or damaged."""

    root: Path | None
    manifest: Manifest | None
    traces: tuple[Path, ...]
    program: Json | None
    samples: tuple[Json, ...]
    notes: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a recording, a log directory, a run folder or a trace file; never write there.

        Raises:
            InputError: nothing there can be read as a recording.
        """
        path = Path(path)
        notes: list[str] = []
        try:
            root, traces = _find(path, notes)
            for trace in traces:
                _sniff(trace)
            manifest, program = _manifest(root, notes), _program(root, notes)
            return cls(root, manifest, traces, program, _samples(root, notes), tuple(notes))
        except OSError as error:
            raise InputError(
                f"{error.filename or path} cannot be read ({error.strerror}): check it and its permissions."
            ) from error


def _find(path: Path, notes: list[str]) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the recording's folder and its traces."""
    if not path.exists():
        raise InputError(f"There is nothing at {path}: check the path.")
    if path.is_file():
        return None, (path,)
    traces = _traces(path) or _newest_run(path, notes)
    own = (path / MANIFEST).is_file()
    if not traces and not own:
        raise InputError(
            f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
            "record one with `tfdoctor profile`."
        )
    return (path if own else None), traces


def _newest_run(path: Path, notes: list[str]) -> tuple[Path, ...]:
    places = [f"{'*/' * depth}plugins/profile/*" for depth in range(DEPTH + 1)]
    for start, below in (("plugins", "profile/*"), ("profile", "*")):  # inside a log directory
        if path.name == start:
            places.append(below)
    runs = {run for place in places for run in path.glob(place) if _traces(run)}
    # Runs are named by date, and names survive copying where times of files do not.
    ordered = sorted(runs, key=lambda run: (run.name, str(run)))
    if not ordered:
        return ()
    if len(ordered) > 1:
        notes.append(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
    return _traces(ordered[-1])


def _traces(folder: Path) -> tuple[Path, ...]:
    """Return the trace files of a folder: a pipe of that name would be waited for, a folder is none."""
    return tuple(sorted(trace for trace in folder.glob(TRACES) if trace.is_file()))


def _sniff(trace: Path) -> None:
    """Refuse, by its first bytes, what is certainly no XSpace."""
    size = trace.stat().st_size
    with trace.open("rb") as file:
        head = file.read(64)
    fault = _fault(head, size)
    if fault:
        raise InputError(f"{trace} is {fault}: expected a *.xplane.pb that a profiler wrote.")


def _fault(head: bytes, size: int) -> str | None:
    """Return what a file is instead of an XSpace, or None."""
    if size == 0:
        return "empty"
    if head.startswith(b"\x1f\x8b"):
        return "compressed (gunzip it first)"
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page"
    if text.startswith((b"{", b"[")) and head[:1] != b"\n":
        return "JSON"
    # An XSpace is a list of planes (field 1), errors (2), warnings (3) and host names (4).
    if head[0] not in (0x0A, 0x12, 0x1A, 0x22):
        return "no XSpace"
    return "text" if _is_text(head) else None


def _is_text(head: bytes) -> bool:
    """Say whether a file reads as text; a protobuf has lengths and ids that do not."""
    return head.isascii() and all(char.isprintable() or char in "\t\r\n" for char in head.decode())


def _manifest(root: Path | None, notes: list[str]) -> Manifest | None:
    if root is None:
        return None
    data = _json(root / MANIFEST, notes)
    if data is None:
        return None
    guest = _json(root / GUEST, notes) if (root / GUEST).is_file() else None
    if guest is not None:  # tfdoctor was killed: the guest's own word is all there is
        data = fold(data, guest)
    manifest = Manifest.from_json(data)
    if manifest.schema > SCHEMA:
        notes.append(f"{MANIFEST} is of a later tfdoctor (schema {manifest.schema}): update it")
    if not manifest.finished:
        notes.append("The recording is unfinished: tfdoctor was killed, or is still running")
    return manifest


def _json(path: Path, notes: list[str]) -> Json | None:
    """Return a JSON object; anything else is damage."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        return data
    notes.append(f"{path.name} is damaged and was left out")
    return None


def _program(root: Path | None, notes: list[str]) -> Json | None:
    if root is None or not (root / PROGRAM).is_file():
        return None
    try:
        program = json.loads(gzip.decompress((root / PROGRAM).read_bytes()))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        program = None
    if isinstance(program, dict):
        return program
    notes.append(f"{PROGRAM} is damaged and was left out")
    return None


def _samples(root: Path | None, notes: list[str]) -> tuple[Json, ...]:
    if root is None or not (root / SAMPLES).is_file():
        return ()
    lines = (root / SAMPLES).read_text(encoding="utf-8", errors="replace").splitlines()
    samples = tuple(_lines(lines))
    if len(samples) < len(lines):
        notes.append(f"{len(lines) - len(samples)} damaged line(s) of {SAMPLES} were left out")
    return samples


def _lines(lines: list[str]) -> Iterator[Json]:
    for line in lines:
        try:
            sample = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(sample, dict) and isinstance(sample.get("unix_ns"), int):
            yield sample
