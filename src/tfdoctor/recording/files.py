"""Reads the files of a recording; damaged parts are left out and noted."""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.samples import MachineSample
from tfdoctor.recording.typed import Misfit, read
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import MOST_ROWS_BYTES, NotReadableError, content, opened, text, unpacked

Json = dict[str, Any]  # A JSON object of a file, before it is read into a dataclass

T = TypeVar("T")

MANIFEST, PROGRAM, SAMPLES, AGENT = ("tfdoctor.json", "program.json.gz", "samples.jsonl", "agent.json")
TRACES = "*.xplane.pb"
MOST_PROGRAM_BYTES = 256 * 2**20  # Of a program, unpacked: ResNet50's 37,789 operations in 863 graphs have 12 MB
# The version of the format of `program.json.gz` that is read: see SCHEMA of the agent's program.py.
PROGRAM_SCHEMA = 1
RUNS = "plugins/profile/*"  # Where TensorBoard finds traces: one folder for each run, with one file for each host


def json_object(path: Path, notes: Notes) -> Json | None:
    """Return the JSON object of a file; note any other content as damage."""
    try:
        data = json.loads(content(path))
    except NotReadableError as error:
        notes.damaged(f"{path.name} was left out: {error.strerror}")
        return None
    except (FileNotFoundError, ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        return data
    notes.damaged(f"{path.name} is damaged and was left out")
    return None


def agent_state(path: Path, notes: Notes) -> AgentState | None:
    """Return the state that a process's agent wrote; None if it is damaged."""
    data = json_object(path, notes)
    return None if data is None else _typed(AgentState, data, path.name, notes)


def program(path: Path, notes: Notes) -> ProgramRecord | None:
    """Return the program of a run, or None if it was not recorded or is damaged."""
    if not path.is_file():
        return None
    try:
        data = json.loads(unpacked(path, MOST_PROGRAM_BYTES))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        check_schema(data.get("schema", PROGRAM_SCHEMA), PROGRAM_SCHEMA, PROGRAM, notes)
    return _typed(ProgramRecord, data, PROGRAM, notes) if data != {} else None


def check_schema(schema: object, known: int, file: str, notes: Notes) -> None:
    """Note that a file is of another version of its format than this tfdoctor reads."""
    if not isinstance(schema, int) or schema < 1:
        notes.add(f"{file} has no version of its format that tfdoctor knows (schema {schema!r})")
    elif schema > known:
        notes.add(f"{file} was written by a later tfdoctor (schema {schema}): update tfdoctor")


def _typed(kind: type[T], data: object, file: str, notes: Notes) -> T | None:
    """Return a file's content as a dataclass, or None if all of it is damaged."""
    faults: list[str] = []
    try:
        typed = read(kind, data, faults)
    except Misfit:
        notes.damaged(f"{file} is damaged and was left out")
        return None
    notes.left_out(file, faults)
    return typed


def samples(path: Path, notes: Notes) -> tuple[MachineSample, ...]:
    """Return the samples of a file, which has one on each line."""
    if not path.is_file():
        return ()
    lines = rows(path, notes)
    faults: list[str] = []
    readable = tuple(_samples(lines, faults))
    if len(readable) < len(lines):
        notes.damaged(f"{len(lines) - len(readable)} damaged line(s) of {SAMPLES} were left out")
    notes.left_out(SAMPLES, faults)
    return readable


def rows(path: Path, notes: Notes) -> list[str]:
    """Return the lines of a file; none, and a note, of what is no file of a recording."""
    try:
        return text(path, MOST_ROWS_BYTES).splitlines()
    except NotReadableError as error:
        notes.damaged(f"{path.name} was left out: {error.strerror}")
        return []


def _samples(lines: list[str], faults: list[str]) -> Iterator[MachineSample]:
    for line in lines:
        try:
            yield read(MachineSample, json.loads(line), faults)
        except (ValueError, RecursionError, Misfit):
            continue


def traces(folder: Path) -> tuple[Path, ...]:
    """Return the trace files of a folder, without pipes and folders."""
    return tuple(sorted(trace for trace in folder.glob(TRACES) if trace.is_file()))


def refuse_foreign(traces: tuple[Path, ...]) -> None:
    """Refuse files if the first bytes show that none of them is an XSpace.

    If only some are damaged, reading them reports it.

    Raises:
        InputError: no file is an XSpace.
    """
    faults = [fault for trace in traces if (fault := _foreign(trace))]
    if faults and len(faults) == len(traces):
        raise faults[0]


def _foreign(trace: Path) -> InputError | None:
    with opened(trace) as file:
        size, head = os.fstat(file.fileno()).st_size, file.read(64)
    fault = _fault(head, size)
    if fault:
        return InputError(f"{trace} is {fault}: expected a *.xplane.pb that a profiler wrote.")
    return None


def _fault(head: bytes, size: int) -> str | None:
    """Return what a file with this head is if not an XSpace, or None."""
    if size == 0:
        return "empty"
    if head.startswith(b"\x1f\x8b"):
        return "compressed (gunzip it first)"
    words = head.lstrip().lower()
    if words.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page"
    if words.startswith((b"{", b"[")) and head[:1] != b"\n":
        return "JSON"
    # An XSpace is a list of planes (field 1), errors (2), warnings (3) and host names (4).
    if head[0] not in (0x0A, 0x12, 0x1A, 0x22):
        return "no XSpace"
    return "text" if _is_text(head) else None


def _is_text(head: bytes) -> bool:
    """Return whether the head of a file is text; a protobuf has lengths and ids that are not printable."""
    return head.isascii() and all(char.isprintable() or char in "\t\r\n" for char in head.decode())
