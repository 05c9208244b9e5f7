"""The thread that samples the stack and writes: from the start of the process, or of a block, to its end."""

from __future__ import annotations

import _thread
import os
import threading
import time
from time import perf_counter_ns

from ..journal import guarded
from .buckets import Buckets
from .clock import Clock
from .log_file import LogFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..journal import Journal

OFTEN_S, FIRST_S = 0.02, 10.0
"""Time between two samples in the first seconds: a run of ten seconds gets some 400."""

USUAL_S = 0.05
"""Time between two samples afterwards."""

AT_MOST = 300
"""A sample is followed by so many times its own duration of rest: 0.33 % of one core."""

WRITE_S = 0.5
"""How often to write: what a killed run did before that is there."""

SECOND_S = 1.0

PATIENCE_S = 0.5
"""How long to wait for the thread to end: it samples for less than a ms, and writes for a few."""


class Recorder:
    """Records a process, or a part of it, until it is told to stop."""

    def __init__(self, log: Journal) -> None:
        self.log, self.clock = log, Clock()
        self.active = False
        self.pid = 0
        self.buckets: Buckets | None = None
        self.file: LogFile | None = None  # None: nothing is written until TensorFlow is imported
        self.first: list[dict[str, object]] = []
        self.waits = False

    @guarded("run")
    def begin(self, started_ns: int | None = None, *, waits: bool = False) -> None:
        """Record this process from now on, in the calling thread; `waits` keeps all in memory for now.

        `started_ns` is when it was started, on the monotonic clock; None is now.
        """
        now = perf_counter_ns()
        started = now if started_ns is None else min(started_ns, now)
        self.pid, self.active, self.waits = os.getpid(), True, waits
        self.clock.begin(threading.get_ident())
        self.buckets = Buckets(self.clock, now, started)
        unix = time.time_ns() - (now - started)
        self.first = [
            {
                "kind": "process",
                "pid": self.pid,
                "started_unix_ns": unix,
                "started_monotonic_ns": started,
                "began": self.buckets.seconds(now),
            }
        ]
        self._start()

    def _start(self) -> None:
        """Start the thread; it is none that the script can see."""
        self.over, self.ended = threading.Event(), _thread.allocate_lock()
        self.ended.acquire()
        _thread.start_new_thread(self._run, (self.over, self.ended))

    def _stop(self) -> None:
        """Have the thread end, and wait for that."""
        self.over.set()
        self.ended.acquire(timeout=PATIENCE_S)

    def _run(self, over: threading.Event, ended: _thread.LockType) -> None:
        try:
            self._loop(over)
        finally:
            ended.release()

    @guarded("run")
    def _loop(self, over: threading.Event) -> None:
        """Sample, rest, and write now and then."""
        buckets = self.buckets
        if buckets is None:
            return
        last = began = perf_counter_ns()
        written, took = began, 0.0
        while not over.wait(self._rest(took, last)):
            cost = time.thread_time()
            now = perf_counter_ns()
            buckets.stacks.sample(now, now - last)
            last = now
            took = time.thread_time() - cost
            if now - written >= WRITE_S * 1e9:
                written = now
                self._write(now)

    def _rest(self, took: float, now: int) -> float:
        """Return how long to rest after a sample that took so many s."""
        buckets = self.buckets
        early = buckets is not None and buckets.seconds(now) < FIRST_S
        return max(OFTEN_S if early else USUAL_S, AT_MOST * took)

    @guarded("run file")
    def _write(self, now: int, *, last: bool = False) -> None:
        """Tell the file what there is to tell."""
        buckets = self.buckets
        if buckets is None or (self.waits and not last):
            return
        file = self._open()
        if file is None:
            return
        lines = self.first + buckets.told()
        self.first = []
        types = buckets.counters.census(buckets.seconds(now), last=last)
        if types is not None:
            lines.append({"kind": "census", "at_s": buckets.seconds(now), "types": types})
        if last or buckets.is_full(now):
            file.append([*lines, *buckets.told(), buckets.bucket(closes=True)])
            file.replace(buckets.open_spans(now))
        else:
            file.append(lines)
            open_bucket = buckets.bucket(closes=False)
            file.append(buckets.told())
            file.replace([*buckets.open_spans(now), open_bucket])

    def _open(self) -> LogFile | None:
        if self.file is None:
            self.file = LogFile(self.log.out)
        return self.file

    @guarded("run end")
    def end(self, ending: dict[str, object] | None = None) -> None:
        """Write the last of it; what comes now is recorded no more."""
        if not self.active or self.pid != os.getpid():
            return
        self.active = False
        self._stop()
        clock, buckets = self.clock, self.buckets
        now = perf_counter_ns()
        place = clock.failed or clock.current
        clock.thread = None
        clock.steps.passes_over()
        if self.waits or buckets is None:
            return
        self._write(now, last=True)
        file = self._open()
        if file is not None:
            file.append(
                [
                    *([{"kind": "dropped", "dropped": clock.dropped}] if clock.dropped else []),
                    {
                        "kind": "end",
                        "end": buckets.seconds(now),
                        "call": place.number,
                        **(ending or {"why": "exit"}),
                    },
                ]
            )
            file.settle()
        self.file = None

    # Forks

    @guarded("fork")
    def before_fork(self) -> None:
        """Have no thread of ours while the process forks: Python warns of threads then."""
        if self.active and self.pid == os.getpid():
            self._stop()
            _gone()

    @guarded("fork")
    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self.active and self.pid == os.getpid():
            self._start()

    def after_fork_in_child(self) -> None:
        """A fork records nothing, unless it trains and begins anew."""
        self.active, self.file, self.waits = False, None, False
        self.clock.thread = None


def _gone() -> None:
    """Give the system the time to remove a thread that has ended."""
    time.sleep(0.0002)
