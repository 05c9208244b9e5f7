"""Reads run.jsonl and run-now.json; damaged lines are left out and noted."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tfdoctor.recording.files import rows
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.run_log import (
    RUN_LOG,
    RUN_NOW,
    Bucket,
    CallPlace,
    Census,
    FunctionTrace,
    KeptStatement,
    LongStep,
    ProcessEnd,
    RunFramework,
    RunLog,
    RunProcess,
    SeenStack,
    Span,
)
from tfdoctor.recording.typed import Misfit, read

KIND, DROPPED = "kind", "dropped"

# The dataclass of each kind of line.
KINDS: dict[str, type] = {
    "process": RunProcess,
    "call": CallPlace,
    "stack": SeenStack,
    "bucket": Bucket,
    "span": Span,
    "trace": FunctionTrace,
    "long": LongStep,
    "census": Census,
    "kept": KeptStatement,
    "framework": RunFramework,
    "end": ProcessEnd,
}

T = TypeVar("T")


def run_log(folder: Path, notes: Notes) -> RunLog | None:
    """Return what the process of a folder did in its whole life; None if that was not recorded, or is damaged."""
    path = folder / RUN_LOG
    if not path.is_file():
        return None
    texts = rows(path, notes)
    now = folder / RUN_NOW
    if now.is_file():
        texts += rows(now, notes)
    if not texts:
        return None
    faults: list[str] = []
    lines, dropped = _lines(texts, faults, notes)
    notes.left_out(RUN_LOG, faults)
    processes = list(_of(RunProcess, lines))
    if not processes:
        notes.damaged(f"{RUN_LOG} is damaged and was left out")
        return None
    return RunLog(
        process=processes[0],
        calls={call.id: call for call in _of(CallPlace, lines)},
        stacks={stack.id: stack for stack in _of(SeenStack, lines)},
        buckets=tuple(_in_order(_of(Bucket, lines))),
        spans=tuple(_latest(_of(Span, lines))),
        traces=tuple(_of(FunctionTrace, lines)),
        long_steps=tuple(_of(LongStep, lines)),
        censuses=tuple(_of(Census, lines)),
        kept=tuple(_of(KeptStatement, lines)),
        frameworks=tuple(_of(RunFramework, lines)),
        end=next(iter(_of(ProcessEnd, lines)), None),
        dropped=dropped,
    )


def _lines(texts: Iterable[str], faults: list[str], notes: Notes) -> tuple[list[tuple[type, Any]], int]:
    """Return the lines that can be read, and how many calls the agent did not tell one by one."""
    found: list[tuple[type, Any]] = []
    damaged = dropped = 0
    for line in texts:
        try:
            data = json.loads(line)
            kind = data[KIND]
            if kind == DROPPED:
                dropped = int(data[DROPPED])
            elif kind in KINDS:  # others are of a later tfdoctor
                found.append((KINDS[kind], read(KINDS[kind], data, faults)))
        except (ValueError, OverflowError, TypeError, KeyError, RecursionError, Misfit):
            damaged += 1
    if damaged:
        notes.damaged(f"{damaged} damaged line(s) of {RUN_LOG} were left out")
    return found, dropped


def _of(kind: type[T], lines: Iterable[tuple[type, Any]]) -> Iterator[T]:
    return (line for of, line in lines if of is kind)


def _in_order(buckets: Iterable[Bucket]) -> Iterator[Bucket]:
    """Yield the buckets without those that an earlier one contains: the open one may have been written as both."""
    end = 0.0
    for bucket in sorted(buckets, key=lambda bucket: (bucket.start, -bucket.end)):
        if bucket.start >= end - 1e-6 and bucket.end > bucket.start:
            end = bucket.end
            yield bucket


def _latest(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield each span once: one that was open when the file was written may have ended since."""
    by_start: dict[tuple[int, float], Span] = {}
    for span in spans:
        known = by_start.get((span.call, span.start))
        if known is None or known.open:
            by_start[span.call, span.start] = span
    return iter(by_start.values())
