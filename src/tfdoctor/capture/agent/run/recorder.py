"""The thread that samples the stack and writes: from the start of the process, or of a block, to its end."""

from __future__ import annotations

from ..process import all_threads
from ..process.imports import TRAINERS, versions
from ..process.journal import guarded
from ..process.kept import main_thread, os, threads, time
from ..process.stack import user_file
from .account import Buckets, LogFile
from .clock import CallClock
from .pace import OFTEN_S, SLOWER, SamplePace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from types import TracebackType

    from ..process.journal import Journal
    from ..process.stack import Line

# A worker is a process that does a part of another one's work; how it was started, and the process that forks some.
FORK, SERVER = "fork", "server"
SESSION = os.getsid(0)  # Of the process that loads this, and of its workers
BRIEF_S = 0.3  # Of a worker that lives for less, nothing is written
MOST_WORKERS = 1000  # Processes whose folders there may be before a worker makes one: pools may renew theirs always
MOST_BYTES = 2_000_000  # Of the file of a worker, after which only buckets and the end are written

# How often to write, and after the first minute: what a killed run did up to its last second is there.
WRITE_S, LATER_S, LATER_FROM_S = 0.5, 0.95, 60.0
# Writing is followed by so many times its own CPU time without, 0.1 % of one core, but not by more than this.
WRITE_AT_MOST, LATEST_S = 1000, 1.0
PATIENCE_S = 0.5  # How long a fork waits for the thread to end: it samples for less than a ms, and writes for a few
GONE_S = 0.0002  # What the system needs to remove a thread that has ended
LAST_S = 5.0  # How long the end waits for that: a disk may be slow, and what was not written would be lost
# Characters of an exception's message that are kept: TensorFlow first names the operation and its whole stack, and
# at the end says what was wrong.
BEGIN, END = 200, 800


class RunRecorder:
    """Records a process, or a part of it, until it is told to stop."""

    def __init__(self, log: Journal) -> None:
        self.log, self.clock = log, CallClock()
        self.active = False
        self.pid = 0
        self.buckets: Buckets | None = None
        self.file: LogFile | None = None  # None: nothing is written until TensorFlow is imported
        self.first: list[dict[str, object]] = []
        self.frameworks: list[dict[str, object]] = []  # that were told
        self.waits, self.pace = False, SamplePace(0)
        self.how = ""  # how this process was started, where it is a worker
        self.family = [self]  # the one that records this process: forks change it
        self._renew()

    def _renew(self) -> None:
        """Have locks of this process's own, and no thread."""
        self.forking, self.forks = threads.RLock(), 0  # under way, in several threads
        self.over = self.ended = threads.allocate_lock()

    @guarded("run")
    def begin(self, started_ns: int | None = None, *, waits: bool = False, how: str = "") -> None:
        """Record this process from now on, in the calling thread; `waits` keeps all in memory for now.

        `started_ns` is when it was started, on the monotonic clock; None is now. `how` is how it was started, where
        it is a worker.
        """
        now = time.perf_counter_ns()
        started = now if started_ns is None else min(started_ns, now)
        self.pid, self.active, self.waits, self.how = os.getpid(), True, waits or bool(how), how
        if how:
            self.log.state.update(worker=how, parent=os.getppid())
        self.clock.begin(main_thread() if how else threads.get_ident())
        self.buckets, self.pace = Buckets(self.clock, now, started), SamplePace(started, SLOWER if how else 1.0)
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

    def seconds(self) -> float:
        """Return how long what is recorded has run."""
        return self.buckets.seconds(time.perf_counter_ns()) if self.buckets else 0.0

    # The thread: plain locks, which no library that replaces those of `threading` makes its own

    def _start(self) -> None:
        """Start the thread; it is none that the script can see."""
        self.over, self.ended = threads.allocate_lock(), threads.allocate_lock()
        self.over.acquire()
        self.ended.acquire()
        all_threads.start(self._run, self.over, self.ended)

    def _stop(self, patience: float) -> bool:
        """Have the thread end, wait for that, and say whether it has ended."""
        if not self.over.locked():
            return True
        self.over.release()
        return self.ended.acquire(timeout=patience)

    def _run(self, over: LockType, ended: LockType) -> None:
        try:
            self._loop(over)
        finally:
            ended.release()

    @guarded("run")
    def _loop(self, over: LockType) -> None:
        """Sample, rest, and write now and then; samples may shorten Python's switch interval."""
        buckets = self.buckets
        if buckets is None:
            return
        try:
            self._samples(over, buckets)
        finally:
            buckets.stacks.interval.end()

    def _samples(self, over: LockType, buckets: Buckets) -> None:
        last = began = time.perf_counter_ns()
        write_at, rest, pace = began + int(WRITE_S * 1e9), OFTEN_S, self.pace
        before, due = pace.thread_s - time.thread_time(), began + int(rest * 1e9)
        while not over.acquire(timeout=rest):
            cpu, now = time.thread_time(), time.perf_counter_ns()
            buckets.stacks.sample(now, now - last, (now - due) / 1e9)
            last = now
            took = time.thread_time() - cpu
            if now >= write_at:
                self._look_for_frameworks()
                begun = time.thread_time()
                self._write(now)
                wrote = time.thread_time() - begun
                every = LATER_S if self.how or buckets.seconds(now) >= LATER_FROM_S else WRITE_S
                pause = min(LATEST_S, WRITE_AT_MOST * wrote)
                write_at = now + int(max(every, pause) * 1e9)
            pace.thread_s = before + time.thread_time()  # also of waiting for Python's lock
            rest = pace.rest(now, took, buckets.calls)
            due = time.perf_counter_ns() + int(rest * 1e9)

    @guarded("frameworks")
    def _look_for_frameworks(self) -> None:
        """Tell which frameworks the script has imported, and on which of them Keras runs."""
        known, backend = versions(), str(self.log.state.get("backend", ""))
        found: list[dict[str, object]] = [
            {"kind": "framework", "name": name, "version": known.get(name, ""), "keras": keras}
            for name, keras in [*((name, False) for name in TRAINERS), (backend, True)]
            if name in known or (keras and name)
        ]
        self.first += [one for one in found if one not in self.frameworks]
        if found != self.frameworks and not self.waits:
            self.frameworks, self.log.state["versions"] = found, known
            self.log.write()

    @guarded("run file")
    def _write(self, now: int, *, last: bool = False) -> None:
        """Tell the file what there is to tell."""
        buckets = self.buckets
        if buckets is None or self._waits(now):
            return
        file = self._open()
        lines, self.first = self.first, []
        types = None if self.how else buckets.counters.census(buckets.seconds(now), last=last)
        if types is not None:
            lines.append({"kind": "census", "at_s": buckets.seconds(now), "types": types})
        closes = last or buckets.is_full(now, file.size)
        bucket = buckets.bucket(closes=closes)
        lines += buckets.told()  # after the bucket, which uses their numbers
        spans = buckets.open_spans(now)
        if closes:
            file.append([*lines, bucket])
            file.replace(spans)
        else:
            file.append(lines)
            file.replace([*spans, bucket])

    def _open(self) -> LogFile:
        if self.file is None:
            self.file = LogFile(self.log.out, *[MOST_BYTES] * bool(self.how))
        return self.file

    def _waits(self, now: int) -> bool:
        """Say whether nothing is written yet: of a worker, while it may be a brief one, or one of too many."""
        if self.waits and self.how not in ("", SERVER) and now - self.pace.began >= BRIEF_S * 1e9:
            self.waits = len(os.listdir(self.log.processes or "")) >= MOST_WORKERS
            if os.getsid(0) != SESSION:  # it has become a service, which goes on for itself
                del self.log.state["worker"]
            elif not self.waits:
                self.log.state.setdefault("argv", [])  # it is told by how it was started
            if not self.waits:
                self.log.write()
        return self.waits

    @guarded("run end")
    def end(self, error: BaseException | None = None) -> None:
        """Write the last of it, where an exception ends it or None does; what comes now is recorded no more."""
        if not self.active or self.pid != os.getpid():
            return
        self.active = False
        ended = self._stop(LAST_S)
        clock, buckets = self.clock, self.buckets
        now, clock.thread = time.perf_counter_ns(), None
        clock.repeats.settle()
        clock.steps.passes_over()
        if buckets is None or not ended or self._waits(now):
            return
        self._look_for_frameworks()
        self._write(now, last=True)
        dropped = [{"kind": "dropped", "dropped": clock.dropped}] if clock.dropped else []
        end = {"kind": "end", "end": buckets.seconds(now)}
        file = self._open()
        file.append([*dropped, {**end, **_of_end(error)}])
        file.settle()
        self.file = None

    # Forks

    @guarded("fork")
    def before_fork(self) -> None:
        """Have no thread of ours while the process forks: Python warns of threads then."""
        if self.active and self.pid == os.getpid():
            with self.forking:
                self.forks += 1
                if self.forks == 1:
                    self._stop(PATIENCE_S)
                    time.sleep(GONE_S)

    @guarded("fork")
    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self.active and self.pid == os.getpid():
            with self.forking:
                self.forks = max(0, self.forks - 1)
                if not self.forks:
                    self._start()

    def begins_in_fork(self) -> None:
        """Record this fork, which may train, in place of the recorder that does so of any fork."""
        other, self.family[:] = self.family[0], [self]
        if other.active and other.pid == os.getpid():
            other.active = False
            other._stop(PATIENCE_S)
        self.begin(how=FORK)

    def after_fork_in_child(self) -> None:
        """A fork is recorded by another one, unless it trains and begins anew."""
        self.active, self.file, self.waits = False, None, False
        self.clock.thread = None
        if self.buckets:
            self.buckets.stacks.interval.end()
        self._renew()


def _of_end(error: BaseException | None) -> dict[str, object]:
    """Return how a process or a block ended that left an exception; None without."""
    if error is None:
        return {"why": "exit"}
    from ..process.masking import LONGEST, clean  # takes 10 ms of CPU, and few processes need it

    try:
        text = str(error).strip()
    except Exception:  # of the user's own class
        text = ""
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}{text[-LONGEST:]}"
    text = clean(text)  # before it is cut: half a token has no form
    if len(text) > BEGIN + END:
        text = f"{text[:BEGIN]} … {text[-END:]}"
    why = "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
    return {"why": why, "error": type(error).__name__, "message": text, "at": _line(error.__traceback__)}


def _line(trace: TracebackType | None) -> Line | None:
    """Return the innermost line of the user's in a traceback."""
    found: Line | None = None
    while trace is not None:
        path = user_file(trace.tb_frame.f_code.co_filename)
        if path is not None:
            found = path, trace.tb_lineno
        trace = trace.tb_next
    return found
