"""What the source says of a run that is over: what makes arguments of calls, and what the loops keep.

The run noted which of the user's lines train (`TrainingCall`) and trace functions (`FunctionTrace`). A file is read
where it is unchanged since the run began.
"""

import json
import linecache
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from msgspec import to_builtins

from tfdoctor.capture.sources.frames import At
from tfdoctor.capture.sources.kept import keeping
from tfdoctor.capture.sources.makers import assigned, makers
from tfdoctor.recording import Recording
from tfdoctor.recording.files import Notes, run_log
from tfdoctor.recording.run_log import RUN_LOG, AssignedNumber, LoopMakers, RunLog, UnreadSource
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import SyntaxTree, decoded
from tfdoctor.terms.files import content

Files = Callable[[str], SyntaxTree | None]  # By their recorded paths

MOST_TOLD = 20  # Statements that are told of a run
MOST_BYTES = 1_000_000  # Of a file that is read: some 30,000 lines, which take 2 s and 0.2 GB


def tell(folder: Path, names: Mapping[str, str] | None = None) -> None:
    """Add it to the account of an ended process; `names` are those of code without a file, by its recorded path.

    Raises:
        OSError: it cannot be written.
    """
    written = (folder / RUN_LOG).is_file()  # else it was killed before that
    log = run_log(folder, Notes()) if written else None
    if log is not None and (log.training or log.traces):
        read = with_sources(log, names or {})
        lines = [
            json.dumps({"kind": kind, **to_builtins(one)}, separators=(",", ":"))
            for kind in ("assigned", "makers", "kept", "unread")
            for one in getattr(read, kind)
        ]
        with (folder / RUN_LOG).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


def completed(recording: Recording) -> Recording:
    """Return a recording with it, where tfdoctor was killed before the run was over, and this is the machine."""
    manifest, run = recording.manifest, recording.run
    if manifest is None or run is None or (manifest.finished and not manifest.background):
        return recording
    return recording if manifest.host.name != os.uname().nodename else replace(recording, run=with_sources(run, {}))


def with_sources(log: RunLog, names: Mapping[str, str]) -> RunLog:
    """Return an account with what the source says of its calls; what it has already stays."""
    since, unread = log.process.started_unix_ns / 1e9 + log.process.began, list[UnreadSource]()
    files = cache(lambda path: _source(path, names.get(path, ""), since, unread))
    made, kept = {one.at: one for one in log.makers}, {one.at: one for one in log.kept}
    for call in reversed(log.training):  # of two calls in a loop, the last one knows what its line holds
        with suppress(RecursionError):  # an expression of hundreds of parts
            frames = list(_frames(call.frames, files))
            if frames and (spans := makers(frames[0].source, frames[0].line)):
                at = frames[0].source.path, frames[0].line
                made[at] = LoopMakers(at, spans)
            if len(frames) == len(call.frames) and len(kept) < MOST_TOLD:
                for one in keeping(frames, fits=call.fits, direct=call.direct):
                    kept.setdefault(one.at, one)
    numbers = log.assigned or tuple(_numbers(log, files))
    told = tuple(kept.values())[:MOST_TOLD]
    return replace(log, assigned=numbers, makers=tuple(made.values()), kept=told, unread=tuple(unread))


def _numbers(log: RunLog, files: Files) -> Iterator[AssignedNumber]:
    """Yield the lines that assigned the numbers which calls that traced passed to parameters, each once."""
    known = set[tuple[str, str, tuple[str, int] | None]]()
    numbers = ((trace, one) for trace in log.traces for one in trace.numbers)
    for trace, one in numbers:
        key = trace.name, one.name, trace.at
        source = files(trace.at[0]) if trace.at and key not in known else None
        known.add(key)
        if trace.at and source:
            line = assigned(At(source, trace.at[1]), trace.name, trace.given, one.place)
            if line is not None:
                yield AssignedNumber(trace.name, one.name, trace.at, (trace.at[0], line))


def _frames(frames: tuple[tuple[str, int, str], ...], files: Files) -> Iterator[At]:
    """Yield frames in the source, as far as it is the one that ran."""
    for path, line, function in frames:
        source = files(path)
        at = At(source, line) if source is not None else None
        if at is None or at.name != function:
            return
        yield at


def _source(path: str, name: str, since: float, unread: list[UnreadSource]) -> SyntaxTree | None:
    """Return the source of a file, or of code by its name; None where it has changed since, or cannot be read."""
    try:
        file, text = Path(path).resolve(), "".join(linecache.getlines(name)).encode() if name else b""
        if not name and file.stat().st_mtime <= since:
            text = content(file)
        if len(text) > MOST_BYTES:
            unread.append(UnreadSource(path))
        return SyntaxTree(decoded(text)[1], path) if 0 < len(text) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, LookupError, Declined):
        return None
