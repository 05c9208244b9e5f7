"""Captures: each window that was traced, with its profiler, in a folder of its own; the best one is the recording.

TensorFlow names what it writes by the second and overwrites, so two captures never share a folder. The user's own
profiler always comes first: it gets our markers, and we a copy of what it writes.
"""

from __future__ import annotations

import contextlib
import sys

from ..process import tensorflow_api
from ..process.kept import os, time
from ..run.waiting import told
from . import collectives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..process.declared import ProfilerModule, TraceMarker
    from .steps import StepCounter

TRACES = os.path.join("plugins", "profile", "*", "*.xplane.pb")

# A loop that has not stepped for so long, and for so many of its longest steps, was left.
IDLE_S, IDLE_STEPS = 10.0, 10
# What all threads of the process have read since it began, as Linux counts it; files, pipes and sockets alike.
COUNTERS = "/proc/self/io"

WARNING = 1  # absl's LogSeverity; INFO is 0
# Releases of absl with long-term support, the newest first.
VERSIONS = ("20260107", "20250814", "20250512", "20250127", "20240722", "20240116")
LIBRARY = "libtensorflow_framework.so.2"


class ProfilerApi:
    """TensorFlow's own functions that start and stop the profiler, as they were before the hooks."""

    def __init__(self, module: ProfilerModule) -> None:
        self.module = module
        self.start, self.stop = module.start, module.stop

    def running(self) -> bool:
        """Say whether TensorFlow holds a profiler."""
        return self.module._profiler is not None


class Capture:
    """One traced window: its profiler, the steps it has seen and the record of it in the manifest."""

    def __init__(
        self, api: ProfilerApi, out: str, number: int, warmup: int, source: StepCounter | None = None
    ) -> None:
        self.api, self.out, self.warmup = api, out, warmup
        self.folder = os.path.join(out, f"capture{number}")
        self.source = source  # None while a window by time has met no step
        self.calls = 0
        self.known, self.known_at, self.longest = 0, time.monotonic(), 0.0  # what `idle` saw last
        self.discarded: list[int] = []  # numbers of markers that were no steps
        self.start = source.seen if source else 0
        self.record: dict[str, Any] = {  # `tfdoctor.recording.agent.TracedWindow` reads it
            "warmup": 0,
            "steps": 0,
            "first_step": 0,
            "calls": 0,
            "source": source.kind.value if source else "time",
            "at": source.at if source else None,
            "started_unix_ns": time.time_ns(),
            "stopped_unix_ns": None,
            "contains_warmup": False,
            "stopped_by": "unfinished",
            "read_bytes": None,
            "read_calls": None,
        }
        self.read_before = read_so_far()
        self.trace: Callable[..., TraceMarker] = tensorflow_api.of_tensorflow("profiler.trace").Trace
        self.unnumbered = collectives.Unnumbered()
        self.logdir = ""  # of the user's own profiler
        self.began = time.time()

    @property
    def borrowed(self) -> bool:
        """Whether the profiler is the user's."""
        return bool(self.logdir)

    def borrow(self, logdir: str | os.PathLike[str]) -> None:
        """The user's profiler is running, and writes to a folder."""
        self.logdir = os.path.abspath(os.fspath(logdir))

    def profile(self) -> None:
        """Start a profiler of ours.

        Raises:
            Exception: TensorFlow's own, where somebody else profiles and was first.
        """
        if self.api.running():
            raise RuntimeError("another profiler is running")
        self.unnumbered.begin()
        try:
            with warnings_only():
                self.api.start(self.folder)
        except BaseException:  # Ctrl-C too: the table is the user's
            self.unnumbered.end()
            # Refused by a profiler server's session: TensorFlow keeps a dead object that would
            # refuse every later start of the user's. Dropping it writes nothing.
            if self.api.running():
                self.api.stop(save=False)
            raise

    def marker(self, number: int, k: int) -> TraceMarker:
        """Open the marker of a call: `_r` makes it a root, which is what the analysers ask for.

        TensorFlow joins keywords to such a text itself, in twice the time.
        """
        return self.trace(f"train#step_num={number},_r=1,steps={k}#")

    def sampled(self, number: int, k: int) -> TraceMarker:
        """Open the marker of a call that is sampled and not measured: no analyser takes it for a step."""
        return self.trace("tfdoctor_sampled", step_num=number, steps=k)

    def begin(self, source: StepCounter, number: int) -> None:
        """The first traced step of a source is known."""
        self.source, self.start = source, number
        self.record["warmup"] = self.record["first_step"] = number
        self.record["source"], self.record["at"] = source.kind.value, source.at
        self.record["contains_warmup"] = number < self.warmup

    def idle(self, now: float) -> bool:
        """Say whether its loop was left, as far as the time since the last look tells that saw a new step."""
        since = now - self.known_at
        if self.calls == self.known:
            return since > max(IDLE_S, IDLE_STEPS * self.longest)
        if self.known:
            self.longest = max(self.longest, since)
        self.known, self.known_at = self.calls, now
        return False

    def retract(self, number: int, *, measured: bool) -> None:
        """A marker of this number stood for no step."""
        self.calls -= measured
        self.discarded.append(number)

    def finish(self) -> None:
        """Mark when the last step was over, by an empty event; the first time, nothing later is measured."""
        with self.trace("tfdoctor_end"):
            self.record["stopped_unix_ns"] = self.record["stopped_unix_ns"] or time.time_ns()

    def end(self, reached: int, reason: str, *, open_ended: bool) -> None:
        """The steps are over, at a step; what came after the loop is no part of an `open_ended` last one."""
        if open_ended and self.calls > 1 and self.source is not None:
            self.discarded.append(self.source.seen - 1 + self.source.discarded)
        now = read_so_far()
        if self.read_before is not None and now is not None:
            self.record["read_bytes"] = now[0] - self.read_before[0]
            self.record["read_calls"] = now[1] - self.read_before[1]
        self.finish()
        self.record["steps"] = max(0, reached - self.start)
        self.record["calls"], self.record["stopped_by"] = self.calls, reason

    def stop(self) -> None:
        """Stop the profiler and write the trace; of the user's, copy what it has written by now."""
        if self.borrowed:
            self._copy([path for path in _traces(self.logdir) if os.stat(path).st_mtime >= self.began])
            return
        try:
            with warnings_only():
                self.api.stop()
        finally:
            self.unnumbered.end()

    def _copy(self, written: list[str]) -> None:
        import shutil

        if written:
            newest = max(written, key=lambda path: os.stat(path).st_mtime)
            run = os.path.basename(os.path.dirname(newest))
            folder = os.path.join(self.folder, "plugins", "profile", run)
            os.makedirs(folder, exist_ok=True)
            shutil.copyfile(newest, os.path.join(folder, os.path.basename(newest)))

    @property
    def good(self) -> tuple[int, int]:
        """How many steps it has after the warm-up, and how many in all."""
        last = self.start + self.record["steps"]
        return max(0, last - max(self.start, self.warmup)), self.record["steps"]

    def traced(self) -> bool:
        """Say whether the profiler left a trace."""
        return bool(_traces(self.folder))

    def leave(self, *, keep: bool) -> None:
        """Remove its folder; to `keep` it is to make its trace the recording's, in place of an earlier one."""
        import shutil

        if keep:
            final = os.path.join(self.out, "plugins")
            shutil.rmtree(final, ignore_errors=True)
            os.replace(os.path.join(self.folder, "plugins"), final)
        shutil.rmtree(self.folder, ignore_errors=True)


def _traces(folder: str) -> list[str]:
    import glob

    return glob.glob(os.path.join(glob.escape(folder), TRACES))


def read_so_far() -> tuple[int, int] | None:
    """Return the bytes and the calls of all reads so far; None where the system does not count them."""
    values = dict(line.split(b":", 1) for line in told(COUNTERS).splitlines())
    # Another system, or a kernel without these counters:
    return (int(values[b"rchar"]), int(values[b"syscr"])) if {b"rchar", b"syscr"} <= {*values} else None


@contextlib.contextmanager
def warnings_only() -> Iterator[None]:
    """Keep the messages of TensorFlow's profiler out of the script's output: five lines, in a progress bar.

    TensorFlow logs by absl, whose least level belongs to the process: it is WARNING meanwhile, and the script's own
    again afterwards. Warnings and errors of all threads stay. absl's functions are C++, and their names contain its
    version: where none of the known names exists, or TensorFlow logs by itself (up to 2.18), the messages stay too.
    """
    found = _levels()
    before = found[0]() if found is not None else WARNING
    if found is None or before >= WARNING:
        yield
        return
    get, put = found
    put(WARNING)
    try:
        yield
    finally:
        if get() == WARNING:  # the script has chosen no other level meanwhile
            put(before)


def _levels() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """Return absl's functions that read and set the level; None where they are not found."""
    import ctypes

    paths = getattr(sys.modules.get("tensorflow"), "__path__", None) or ()
    for folder in paths:
        try:  # only a library that is loaded already
            library = ctypes.CDLL(os.path.join(folder, LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        for version in VERSIONS:
            space = f"_ZN4absl12lts_{version}"
            get = getattr(library, f"{space}11MinLogLevelEv", None)
            put = getattr(library, f"{space}14SetMinLogLevelENS0_18LogSeverityAtLeastE", None)
            if get is not None and put is not None:
                get.restype, put.restype, put.argtypes = ctypes.c_int, None, [ctypes.c_int]
                return get, put
    return None
