"""workers.jsonl: what processes did that do a part of the script's work, one JSON object for each of them.

Each writes an account of its own (run.jsonl) as the script's process does. It is added up here, at the end of the
run or, where tfdoctor was killed before, as it is read.
"""

import re
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import Self

from tfdoctor.recording.run_log import Line, RunLog, SeenStack
from tfdoctor.recording.typed import Amount, Count
from tfdoctor.terms.kinds import RunWork
from tfdoctor.terms.record import Record

WORKER_LOG = "workers.jsonl"
MOST_LINES = 40  # Of one worker, the largest
# The innermost function of a worker in which no line of the user's runs, where it waits for its next task: pools
# read from a pipe that a lock protects. Sending a result, and unpacking a task, are work.
WAITS = re.compile(
    r"(multiprocessing\.(connection|synchronize)\.(?!.*send)|selectors\.|.*\bqueues\.(Queue\.)?get$)"
)
# What a line of the user's calls to get its next task.
TAKES = re.compile(r"multiprocessing\.(queues|connection|managers)\.(\w+\.)?(get|recv\w*|poll|wait)$")


class WorkerTime(StrEnum):
    """What a worker does with its time."""

    IMPORTING = "importing"
    WAITING = "waiting"  # for its next task
    WORKING = "working"

    @classmethod
    def of(cls, seen: SeenStack) -> Self:
        """Return what a stack of a worker shows."""
        if seen.work is RunWork.IMPORTING:
            return cls.IMPORTING
        waits = TAKES.match(seen.calls or "") if seen.at else WAITS.match(seen.runs or "")
        return cls.WAITING if waits else cls.WORKING


class WorkerLine(Record):
    """Ms and samples at a line of the user's, and what it calls; without one, of the library function that runs."""

    time: WorkerTime
    ms: Amount
    samples: Count = 0
    at: Line | None = None
    calls: str = ""


class Worker(Record):
    """A worker: how it was started ("fork", "spawn", "loky"), how long it lived, and what it did, in ms.

    ``importing_ms`` has what passed before the recorder began to look, too: Python's start and the first imports.
    """

    pid: Count
    ms: Amount
    parent: Count = 0
    how: str = ""
    started_unix_ns: Count = 0
    importing_ms: Amount = 0.0
    waiting_ms: Amount = 0.0
    lines: tuple[WorkerLine, ...] = ()

    @classmethod
    def of(cls, log: RunLog, how: str, parent: int) -> Self:
        """Add up the account of a worker."""
        told: dict[WorkerLine, tuple[float, int]] = {}
        for bucket in log.buckets:
            for number, ms in bucket.stacks.items():
                seen = log.stacks.get(int(number)) if number.isdecimal() else None
                if seen is not None:
                    calls = (seen.calls if seen.at or seen.work is RunWork.IMPORTING else seen.runs) or ""
                    line = WorkerLine(WorkerTime.of(seen), 0.0, at=seen.at, calls=calls)
                    before, count = told.get(line, (0.0, 0))
                    told[line] = before + ms, count + bucket.samples.get(number, 0)
        summed = (replace(line, ms=ms, samples=count) for line, (ms, count) in told.items())
        lines = sorted(summed, key=attrgetter("ms"))
        times = {time: sum(line.ms for line in lines if line.time is time) for time in WorkerTime}
        began_ms = log.process.began * 1e3
        return cls(
            pid=log.process.pid, parent=parent, how=how, started_unix_ns=log.process.started_unix_ns,
            ms=max([began_ms, *(bucket.end * 1e3 for bucket in log.buckets)]),
            importing_ms=began_ms + times[WorkerTime.IMPORTING], waiting_ms=times[WorkerTime.WAITING],
            lines=tuple(lines[:-MOST_LINES - 1 : -1]),
        )  # fmt: skip

    @property
    def working_ms(self) -> float:
        """The rest of its time."""
        return max(0.0, self.ms - self.importing_ms - self.waiting_ms)

    @property
    def told_ms(self) -> float:
        """What it tells of, which cannot be much more than it lived."""
        return max(self.importing_ms + self.waiting_ms, sum(line.ms for line in self.lines))
