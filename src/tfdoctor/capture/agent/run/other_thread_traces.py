"""A thread that traces a function while the one that the account follows waits for it: the run does what it does.

Training makes the account follow a thread, but a function trains only once it is traced, which may take longer.
"""

from __future__ import annotations

import sys
import threading

from ..process.journal import guarded
from ..process.other_threads import OtherThreads
from .kinds import TRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.journal import Journal
    from .clock import CallClock, Enter

WAITING = threading.Thread.join.__code__.co_filename
"""The file of Python's locks and events: a thread whose innermost frame is there waits for another one."""


class TracedElsewhere:
    """A context in which a thread that is not followed traces a function; then the other one is followed again."""

    def __init__(self, clock: CallClock, log: Journal, name: str) -> None:
        self.clock, self.log, self.name = clock, log, name
        self.entered: Enter | None = None
        self.followed, self.trained = 0, False

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *_: object) -> None:
        if self.entered is not None:
            self._end(self.entered)

    @guarded("run trace")
    def _begin(self) -> None:
        clock = self.clock
        followed = clock.thread
        if followed is None or not clock.idle() or not _waits(followed):
            return
        with clock.following:
            if clock.thread != followed or not clock.idle():
                return
            self.followed, self.trained = followed, clock.trains
            clock.follow(threading.get_ident())
        clock.inside = 1  # what it traces within are parts of it
        self.entered = clock.enter(TRACE, self.name, sys._getframe(1))

    @guarded("run trace")
    def _end(self, entered: Enter) -> None:
        clock = self.clock
        clock.leave(entered)
        with clock.following:
            if clock.ours():
                clock.inside = 0
                clock.follow(self.followed)
                clock.trains = self.trained


def _waits(thread: int) -> bool:
    with OtherThreads() as frames:
        frame = frames.get(thread)
        return frame is not None and frame.f_code.co_filename == WAITING
