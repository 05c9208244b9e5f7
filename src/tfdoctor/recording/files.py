"""The files of a recording: read with care, for what is damaged is left out and said."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from tfdoctor.errors import InputError
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.samples import MachineSample
from tfdoctor.recording.typed import Misfit, read

Json = dict[str, Any]
"""An object of a file, before it is read into a dataclass."""

T = TypeVar("T")

MANIFEST, PROGRAM, SAMPLES, AGENT = (
    "tfdoctor.json",
    "program.json.gz",
    "samples.jsonl",
    "agent.json",
)
TRACES = "*.xplane.pb"
RUNS = "plugins/profile/*"
"""Where TensorBoard looks for traces: one folder a run, one file a host in it."""


def json_object(path: Path, notes: Notes) -> Json | None:
    """Return a JSON object; anything else is damage."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        return data
    notes.damaged(f"{path.name} is damaged and was left out")
    return None


def agent_state(path: Path, notes: Notes) -> AgentState | None:
    """Return what the agent of a process left; None when that is damaged."""
    data = json_object(path, notes)
    return None if data is None else _typed(AgentState, data, path.name, notes)


def program(path: Path, notes: Notes) -> ProgramRecord | None:
    """Return what a run built, or None when that was not recorded or is damaged."""
    if not path.is_file():
        return None
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        data = None
    return _typed(ProgramRecord, data, PROGRAM, notes) if data != {} else None


def _typed(kind: type[T], data: object, file: str, notes: Notes) -> T | None:
    """Return what a file holds as a dataclass, or None when it is damaged as a whole."""
    faults: list[str] = []
    try:
        found = read(kind, data, faults)
    except Misfit:
        notes.damaged(f"{file} is damaged and was left out")
        return None
    notes.left_out(file, faults)
    return found


def samples(path: Path, notes: Notes) -> tuple[MachineSample, ...]:
    """Return the samples of a file, one a line."""
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    faults: list[str] = []
    found = tuple(_samples(lines, faults))
    if len(found) < len(lines):
        notes.damaged(f"{len(lines) - len(found)} damaged line(s) of {SAMPLES} were left out")
    notes.left_out(SAMPLES, faults)
    return found


def _samples(lines: list[str], faults: list[str]) -> Iterator[MachineSample]:
    for line in lines:
        try:
            yield read(MachineSample, json.loads(line), faults)
        except (ValueError, RecursionError, Misfit):
            continue


def traces(folder: Path) -> tuple[Path, ...]:
    """Return the trace files of a folder: a pipe of that name would be waited for, a folder is none."""
    return tuple(sorted(trace for trace in folder.glob(TRACES) if trace.is_file()))


def refuse_strangers(found: tuple[Path, ...]) -> None:
    """Refuse, by their first bytes, files of which certainly none is an XSpace.

    Of several hosts' traces some may be damaged: reading those says so.

    Raises:
        InputError: none is one.
    """
    faults = [fault for trace in found if (fault := _stranger(trace))]
    if faults and len(faults) == len(found):
        raise faults[0]


def _stranger(trace: Path) -> InputError | None:
    size = trace.stat().st_size
    with trace.open("rb") as file:
        head = file.read(64)
    fault = _fault(head, size)
    if fault:
        return InputError(f"{trace} is {fault}: expected a *.xplane.pb that a profiler wrote.")
    return None


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
