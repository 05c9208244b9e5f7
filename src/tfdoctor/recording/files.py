"""Reads the files of a recording; damaged parts are left out and noted."""

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.manifest import SCHEMA, Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.run_log import KINDS, RUN_LOG, RUN_NOW, Bucket, RunLog, Span
from tfdoctor.recording.samples import MachineSample
from tfdoctor.recording.typed import Misfit, read
from tfdoctor.recording.worker_log import WORKER_LOG, Worker
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import MOST_ROWS_BYTES, NotReadableError, content, opened, unpacked
from tfdoctor.terms.json_form import LONGEST_MS
from tfdoctor.terms.text import counted, legible

T = TypeVar("T")

MANIFEST, PROGRAM, SAMPLES, AGENT = ("tfdoctor.json", "program.json.gz", "samples.jsonl", "agent.json")
TRACE = ".xplane.pb"  # How the names of traces end
MOST_PROGRAM_BYTES = 256 * 2**20  # Of a program, unpacked: ResNet50's 37,789 operations in 863 graphs have 12 MB
# The version of the format of `program.json.gz` that is read: see SCHEMA of the agent's program.py.
PROGRAM_SCHEMA = 1
OLD_KEYS = {"guest_errors": "agent_errors"}  # Of the manifest (before 22 November 2026), and their present names
RUNS = "plugins/profile/*"  # Where TensorBoard finds traces: one folder for each run, with one file for each host
NAMED = 3  # How many damaged values a note names
# Times may be so many times what they are a part of, and so much more: they are told when a sample is taken.
SLACK, SLACK_MS = 1.5, 5000.0


@dataclass(slots=True)
class Notes:
    """The notes from reading a recording, in order; `damage` contains those about lost data."""

    texts: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a note for the reader of a report."""
        self.texts.append(legible(text))

    def damaged(self, text: str) -> None:
        """Add a note about data that could not be read."""
        self.add(text)
        self.damage.append(self.texts[-1])

    def left_out(self, file: str, faults: list[str]) -> None:
        """Add a note about the values of a file that were left out, if any."""
        if not faults:
            return
        places = ", ".join(fault.lstrip(".") or "the whole file" for fault in faults[:NAMED])
        more = ", …" if len(faults) > NAMED else ""
        values = "1 damaged value" if len(faults) == 1 else f"{len(faults)} damaged values"
        self.damaged(f"{values} of {file} left out: {places}{more}")


def json_object(path: Path, notes: Notes) -> dict[str, Any] | None:
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


def manifest_of(folder: Path, notes: Notes) -> Manifest | None:
    """Return the manifest in a folder; None if it is damaged."""
    data = json_object(folder / MANIFEST, notes)
    if data is None:
        return None
    present = {OLD_KEYS.get(key, key): value for key, value in data.items()}
    manifest = _typed(Manifest, present, MANIFEST, notes) or Manifest()
    check_schema(manifest.schema, SCHEMA, MANIFEST, notes)
    if not manifest.finished:
        notes.add("The recording is unfinished: tfdoctor was killed, could not complete it, or is still running")
    return manifest


def manifest_in(folder: Path) -> Manifest:
    """Return the manifest in a folder, without what cannot be read of it."""
    return manifest_of(folder, Notes()) or Manifest()


def fold(manifest: Manifest, agent: AgentState) -> Manifest:
    """Return a manifest with the data of the agent's state file."""
    newer = {name: getattr(agent, name) or getattr(manifest, name) for name in ("window", "steps", "costs")}
    versions = {**manifest.versions, **agent.versions}
    missing, errors = (*manifest.missing, *agent.missing), (*manifest.agent_errors, *agent.errors)
    return replace(manifest, versions=versions, missing=missing, agent_errors=errors, **newer)


def agent_state(path: Path, notes: Notes) -> AgentState | None:
    """Return the state that a process's agent wrote; None if it is damaged."""
    data = json_object(path, notes)
    return None if data is None else _typed(AgentState, data, path.name, notes)


def program(path: Path, notes: Notes) -> ProgramRecord | None:
    """Return the program of a run; None if nothing was recorded of it, or it is damaged."""
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
    faults: list[str] = []
    try:
        typed = read(kind, data, faults)
    except Misfit:
        notes.damaged(f"{file} is damaged and was left out")
        return None
    notes.left_out(file, faults)
    return typed


def samples(path: Path, notes: Notes) -> tuple[MachineSample, ...]:
    """Return the samples of a file, which has one on each line; none without a file."""
    if not path.is_file():
        return ()
    return tuple(_lines(_rows(path, notes), SAMPLES, lambda _: MachineSample, notes)[MachineSample])


def workers(folder: Path, notes: Notes) -> tuple[Worker, ...] | None:
    """Return what a recording tells of processes that did a part of the script's work; None without such a file."""
    path = folder / WORKER_LOG
    if not path.is_file():
        return None
    found: list[Worker] = _lines(_rows(path, notes), WORKER_LOG, lambda _: Worker, notes)[Worker]
    kept = tuple(one for one in found if one.told_ms <= SLACK * one.ms + SLACK_MS and one.ms < LONGEST_MS)
    if left := len(found) - len(kept):
        notes.damaged(f"{counted(left, 'worker')} left out of {WORKER_LOG}: they tell of more time than passed")
    return kept


def run_log(folder: Path, notes: Notes, manifest: Manifest | None = None) -> RunLog | None:
    """Return what the process of a folder did in its whole life.

    None if the file is empty or damaged, or tells of more ms than passed: then a clock was changed under it.
    """
    now = folder / RUN_NOW
    rows = _rows(folder / RUN_LOG, notes) + (_rows(now, notes) if now.is_file() else [])
    if not rows:
        return None
    found = _lines(rows, RUN_LOG, lambda data: KINDS.get(data["kind"]), notes)
    of = {word: tuple(found[kind]) for word, kind in KINDS.items()}
    if not of["process"]:
        notes.damaged(f"{RUN_LOG} is damaged and was left out")
        return None
    lists: Any = {one.name: of[one.encode_name] for one in structs.fields(RunLog) if one.default == ()}
    lists["spans"] = _latest(of["span"])
    log = RunLog(
        process=of["process"][0],
        calls={call.id: call for call in of["call"]},
        stacks={stack.id: stack for stack in of["stack"]},
        buckets=tuple(_in_order(of["bucket"])),
        end=next(iter(of["end"]), None),
        dropped=of["dropped"][-1].dropped if of["dropped"] else 0,
        **lists,
    )
    for told_ms, passed_ms in _told(log, manifest):
        if told_ms > SLACK * passed_ms + SLACK_MS:
            notes.damaged(
                f"{RUN_LOG} was left out: it tells of {told_ms / 1e3:,.0f} s in {passed_ms / 1e3:,.0f} s, "
                "so the clock of the process was changed"
            )
            return None
    return log


def _told(log: RunLog, manifest: Manifest | None) -> Iterator[tuple[float, float]]:
    """Yield how many ms a log tells of, and how many passed: as a whole, and in each bucket."""
    times = manifest.times if manifest else None
    if times and times.ended_ns and times.pid == log.process.pid:  # no process that outlived tfdoctor
        last_ms = max((bucket.end for bucket in log.buckets), default=0.0) * 1e3
        yield last_ms, max(0.0, (times.ended_ns - times.started_ns) / 1e6)
    yield from ((sum(bucket.calls.values()), (bucket.end - bucket.start) * 1e3) for bucket in log.buckets)


def _rows(path: Path, notes: Notes) -> list[str]:
    """Return the lines of a file; none, and a note, of what is no file of a recording."""
    try:
        return content(path, MOST_ROWS_BYTES).decode("utf-8", errors="replace").splitlines()
    except NotReadableError as error:
        notes.damaged(f"{path.name} was left out: {error.strerror}")
        return []


def _lines(rows: list[str], file: str, kind_of: Callable[[Any], Any], notes: Notes) -> Mapping[type, list[Any]]:
    """Return the lines that can be read, by their kinds; those without a kind are of a later tfdoctor."""
    faults, damaged, found = list[str](), 0, defaultdict[type, list[Any]](list)
    for row in rows:
        try:
            data = json.loads(row)
            if kind := kind_of(data):
                found[kind].append(read(kind, data, faults))
        except (ValueError, TypeError, KeyError, RecursionError, Misfit):
            damaged += 1
    if damaged:
        notes.damaged(f"{damaged} damaged {'line was' if damaged == 1 else 'lines were'} left out of {file}")
    notes.left_out(file, faults)
    return found


def _in_order(buckets: Iterable[Bucket]) -> Iterator[Bucket]:
    """Yield the buckets without those that an earlier one contains: the open one may have been written as both."""
    end = 0.0
    for bucket in sorted(buckets, key=lambda bucket: (bucket.start, -bucket.end)):
        if bucket.start >= end - 1e-6 and bucket.end > bucket.start:
            end = bucket.end
            yield bucket


def _latest(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return each span once: one that was open when the file was written may have ended since."""
    by_start: dict[tuple[int, float], Span] = {}
    for span in spans:
        known = by_start.get((span.call, span.start))
        if known is None or known.open:
            by_start[span.call, span.start] = span
    return tuple(by_start.values())


def traces(folder: Path) -> tuple[Path, ...]:
    """Return the trace files of a folder, without pipes and folders."""
    return tuple(sorted(trace for trace in folder.glob(f"*{TRACE}") if trace.is_file()))


def own_traces(folder: Path) -> tuple[Path, ...]:
    """Return the traces in all run folders of a log directory."""
    return tuple(trace for run in sorted(folder.glob(RUNS)) for trace in traces(run))


def foreign(traces: tuple[Path, ...]) -> InputError | None:
    """Return what to say if the first bytes show that no file is an XSpace; of some, reading them reports it."""
    faults = [_fault(trace) for trace in traces]
    if not faults or not all(faults):
        return None
    return InputError(f"{traces[0]} is {faults[0]}: expected a *.xplane.pb that a profiler wrote.")


def _fault(trace: Path) -> str | None:
    """Return what a file is by its head if it is not an XSpace, or None."""
    with opened(trace) as file:
        head = file.read(64)
    words = head.lstrip().lower()
    if not head:
        return "empty"
    if head.startswith(b"\x1f\x8b"):
        return "compressed (gunzip it first)"
    if words.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page"
    if words.startswith((b"{", b"[")) and head[:1] != b"\n":
        return "JSON"
    # An XSpace is a list of planes (field 1), errors (2), warnings (3) and host names (4).
    if head[0] not in (0x0A, 0x12, 0x1A, 0x22):
        return "no XSpace"
    # A protobuf has lengths and ids that are not printable.
    is_text = head.isascii() and all(char.isprintable() or char in "\t\r\n" for char in head.decode())
    return "text" if is_text else None
