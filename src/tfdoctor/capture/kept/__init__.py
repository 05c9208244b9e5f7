"""What a run keeps: statements of the loops around its training that add to a container, read from the source.

The run noted which of the user's lines train (`TrainingCall`); the files are read when it is over.
"""

import json
import linecache
import time
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import to_builtins

from tfdoctor.capture.kept.frames import At
from tfdoctor.capture.kept.source import UserSource
from tfdoctor.capture.kept.statements import keeping
from tfdoctor.recording import Recording
from tfdoctor.recording.files import Notes, run_log
from tfdoctor.recording.run_log import RUN_LOG, KeptStatement, RunLog, TrainingCall

MOST_TOLD = 20  # Statements that are told of a run
MOST_BYTES = 60_000  # Bytes of a file that is read: some 1,700 lines, which take 35 ms; one of 100 lines takes 2 ms
MOST_S = 2.0  # CPU time after which nothing more is read


def tell(folder: Path, names: Mapping[str, str] | None = None) -> None:
    """Add what the loops of an ended process keep to its account; `names` are those of code by its recorded path.

    Raises:
        OSError: it cannot be written.
    """
    log = run_log(folder, Notes())
    found = kept_by(log, names or {}) if log is not None else ()
    if found:
        lines = [json.dumps({"kind": "kept", **to_builtins(one)}) for one in found]
        with (folder / RUN_LOG).open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))


def completed(recording: Recording) -> Recording:
    """Return a recording with what its loops keep, where tfdoctor was killed before the run was over."""
    manifest, run = recording.manifest, recording.run
    if manifest is None or run is None or run.kept or (manifest.finished and not manifest.background):
        return recording
    return replace(recording, run=replace(run, kept=kept_by(run, {})))


def kept_by(log: RunLog, names: Mapping[str, str]) -> tuple[KeptStatement, ...]:
    """Return such statements of files that have not changed since the run began."""
    began, sources = time.thread_time(), dict[str, UserSource | None]()
    since = log.process.started_unix_ns / 1e9 + log.process.began
    told = dict[tuple[str, int], KeptStatement]()
    for call in reversed(log.training):  # of two calls in a loop, the last one knows what its line holds
        for path, _, _ in call.frames:
            if path not in sources:
                sources[path] = _source(path, names.get(path, path), since)
        for one in _statements(call, sources):
            told.setdefault(one.at, one)
        if len(told) >= MOST_TOLD or time.thread_time() - began > MOST_S:
            break
    return tuple(told.values())[:MOST_TOLD]


def _statements(call: TrainingCall, sources: Mapping[str, UserSource | None]) -> Iterator[KeptStatement]:
    frames = []
    for path, line, function in call.frames:
        source = sources[path]
        at = At(source, line) if source is not None else None
        if at is None or at.name != function:  # it is another source
            return
        frames.append(at)
    yield from keeping(frames, fits=call.fits, direct=call.direct)


def _source(path: str, name: str, since: float) -> UserSource | None:
    """Return the source of a file; None where it cannot be read, is large, or has changed since."""
    try:
        if not Path(path).exists():
            text = "".join(linecache.getlines(name))
        elif Path(path).stat().st_mtime > since:
            return None
        else:
            with tokenize.open(path) as file:
                text = file.read(MOST_BYTES + 1)
        return UserSource(text, path) if 0 < len(text) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
