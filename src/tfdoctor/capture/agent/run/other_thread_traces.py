"""A thread that traces a function while the one that the account follows waits for it: the run does what it does.

Training makes the account follow a thread, but a function trains only once it is traced, which may take longer.
"""

from __future__ import annotations

import sys

from ..process.journal import guarded
from ..process.kept import threads
from ..process.stack import user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.journal import Journal
    from .clock import CallClock
    from .followed_thread import Lent


class TracedElsewhere:
    """A context in which a thread that is not followed traces a function.

    It is followed from when the other one waits, at once or later, until that goes on or the function is traced.
    """

    def __init__(self, clock: CallClock, log: Journal, name: str) -> None:
        self.clock, self.log, self.name = clock, log, name
        self.thread, self.at = threads.get_ident(), user_line(sys._getframe(1))
        self.lent: Lent | None = None

    def __enter__(self) -> None:
        if self.clock.thread is not None:
            self.clock.tracing.append(self)
            self.begin()

    def __exit__(self, *_: object) -> None:
        if self in self.clock.tracing:
            self._end()

    @guarded("run trace")
    def begin(self) -> None:
        """Have this thread followed, where the other one waits; also from the thread that samples."""
        self.lent = self.clock.lend(self.thread, self.name, self.at) or self.lent

    @guarded("run trace")
    def _end(self) -> None:
        self.clock.tracing.remove(self)
        if self.lent is not None:
            self.clock.take_back(self.lent)
