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

USUAL_S = 0.005  # The interval of Python
# Short ones: what a sample may be late by. Of 0.35 ms of Python between calls that give the lock away, hardly any
# sample showed the line at 0.5 ms, and four of five that should at 0.1 ms. Where code in C keeps the lock for long,
# that costs too much: who waits for it takes 4 % of a core at 0.1 ms, 1 % at 0.5 ms. After a sample that came so
# late, the longer one is for so many more.
SHORT_S, LONGER_S, LATE_S, CAREFUL = 0.0001, 0.0005, 0.003, 20
EXACT_S = 2e-6  # Python keeps it in whole microseconds


class SwitchInterval:
    """Python's switch interval, which is short until another thread of the script is seen."""

    def __init__(self) -> None:
        self.made, self.alone = 0.0, True  # the short one that is set; 0.0 is none
        self.careful = 0  # samples that the longer one is for

    def sampled(self, *, imports: bool, late_s: float = 0.0) -> None:
        """A sample was taken, so late; while modules are loaded, a short interval wakes the thread for nothing."""
        self.careful = CAREFUL if late_s > LATE_S else max(0, self.careful - 1)
        if imports:
            self.end()
        else:
            self.begin(LONGER_S if self.careful else SHORT_S)

    def begin(self, short: float = SHORT_S) -> None:
        """Make it short, unless the script has one of its own, or had a second thread."""
        if self.alone and short != self.made and (sys.getswitchinterval() == USUAL_S or self._is_ours()):
            sys.setswitchinterval(short)
            self.made = short

    def look(self, frames: dict[int, FrameType], thread: int | None) -> None:
        """Look at the stacks of all threads: the one that is followed has to be alone."""
        if self.made and any(
            ident not in (thread, threads.get_ident()) and not _is_ours(frame) for ident, frame in frames.items()
        ):
            self.alone = False
            self.end()

    def end(self) -> None:
        """Make it what it was, unless the script has changed it meanwhile."""
        if self._is_ours():
            sys.setswitchinterval(USUAL_S)
        self.made = 0.0

    def _is_ours(self) -> bool:
        return self.made > 0.0 and abs(sys.getswitchinterval() - self.made) < EXACT_S


def _is_ours(frame: FrameType) -> bool:
    """Say whether a thread runs, or waits in, our code alone; hooks run below the script's."""
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith(OURS):
        at = at.f_back
    return at is None
