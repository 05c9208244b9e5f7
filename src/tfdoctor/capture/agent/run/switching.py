"""How soon Python takes the interpreter from the thread that runs, for the one that samples it.

A sample is taken when its thread gets Python's interpreter lock: at once where the other thread runs without it,
and otherwise after the switch interval, by default 5 ms. In a step of 10 ms samples then show what comes
5 ms later, and calls that give the lock away most of all. With a short interval they show what runs.

Other threads of the script that compete for the lock would change over more often, too. So the interval is short
only until a second thread of the script is seen.
"""

from __future__ import annotations

import sys

from ..process.kept import threads
from ..process.stack import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

# The interval of Python, and while one thread of the script runs alone: what a sample may be late by.
USUAL_S, SHORT_S = 0.005, 0.0005


class SwitchInterval:
    """Python's switch interval, which is short until another thread of the script is seen."""

    def __init__(self) -> None:
        self.short, self.alone = False, True

    def sampled(self, *, imports: bool) -> None:
        """A sample was taken; while modules are loaded, a short interval wakes the thread for nothing."""
        (self.end if imports else self.begin)()

    def begin(self) -> None:
        """Make it short, unless the script has one of its own, or had a second thread."""
        if self.alone and sys.getswitchinterval() == USUAL_S:
            sys.setswitchinterval(SHORT_S)
            self.short = True

    def look(self, frames: dict[int, FrameType], thread: int | None) -> None:
        """Look at the stacks of all threads: the one that is followed has to be alone."""
        if self.short and any(
            ident not in (thread, threads.get_ident()) and not _is_ours(frame) for ident, frame in frames.items()
        ):
            self.alone = False
            self.end()

    def end(self) -> None:
        """Make it what it was, unless the script has changed it meanwhile."""
        if self.short and abs(sys.getswitchinterval() - SHORT_S) < SHORT_S / 100:
            sys.setswitchinterval(USUAL_S)
        self.short = False


def _is_ours(frame: FrameType) -> bool:
    """Say whether a thread runs, or waits in, our code alone; hooks run below the script's."""
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith(OURS):
        at = at.f_back
    return at is None
