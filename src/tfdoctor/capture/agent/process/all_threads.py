"""Threads: those of the agent, and the stacks of all others, read so that Python survives it.

The script sees none of ours, in `threading` or by a signal that is delivered to it.

Tested: to read a stack makes objects of its frames, which may start a garbage collection. What that runs, such as
callbacks of the collector, lets the other thread go on, and its frames are gone while they are read. Python 3.11
then crashes or hangs; 3.9, 3.10, 3.12 and 3.13 do not. So 3.11 collects nothing meanwhile. A script that turns the
collector on or off within the same tenth of a millisecond may find it as it was before.

The frame that reads the stacks is one of those that it holds. They are let go after each reading: otherwise all of
them would keep what their variables refer to, such as iterators and batches, until the next collection.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in: no file of the user's hides it
import sys

from .kept import gc, os, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

FRAGILE = sys.version_info[:2] == (3, 11)


class Collector:
    """Python's garbage collector, which several readers of stacks may keep from running."""

    def __init__(self) -> None:
        self.lock = threads.allocate_lock()
        self.readers = 0
        self.stopped = False  # by us

    def stop(self) -> None:
        """Let it rest until all readers are done."""
        with self.lock:
            self.readers += 1
            if self.readers == 1 and gc.isenabled():
                gc.disable()
                self.stopped = True

    def go_on(self) -> None:
        """A reader is done."""
        with self.lock:
            self.readers -= 1
            if not self.readers and self.stopped:
                self.stopped = False
                gc.enable()

    def after_fork(self) -> None:
        """A fork has none of the threads that were reading."""
        if self.stopped:
            gc.enable()
        self.lock, self.readers, self.stopped = threads.allocate_lock(), 0, False


collector = Collector()
os.register_at_fork(after_in_child=collector.after_fork)


class OtherThreads:
    """A context in which the stacks of all threads can be read."""

    read = staticmethod(sys._current_frames)  # as it was before the script, which may put a double there

    def __init__(self) -> None:
        self.frames: dict[int, FrameType] = {}

    def __enter__(self) -> dict[int, FrameType]:
        if FRAGILE:
            collector.stop()
        try:
            self.frames = self.read()
        except BaseException:
            self.__exit__()
            raise
        return self.frames

    def __exit__(self, *_: object) -> None:
        self.frames.clear()
        if FRAGILE:
            collector.go_on()


def start(run: Callable[..., object], *args: object) -> None:
    """Start a thread of ours, which blocks all signals: the script's threads may `sigwait` for them."""
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    try:  # the thread begins as this one is
        threads.start_new_thread(run, args)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


class OwnThread:
    """A thread, which ends with its function or with the interpreter."""

    def __init__(self, run: Callable[..., object], *args: object) -> None:
        self.pid = os.getpid()
        self.over = False
        start(self._run, run, args)

    def _run(self, run: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            run(*args)
        finally:
            self.over = True

    def is_alive(self) -> bool:
        """Say whether it runs; a fork does not have it."""
        return not self.over and self.pid == os.getpid()
