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
# The longest short one: what a sample may be late by. It is a twentieth of short steps: 0.35 ms of Python in steps
# of 2 ms were in hardly any sample at 0.5 ms, and in four of five that should show them at 0.1 ms. A shorter one
# costs too much where code in C keeps the lock: who waits for it takes 4 % of a core at 0.1 ms, 1 % at 0.5 ms.
SHORT_S, SHORTEST_S, OF_STEP = 0.0005, 0.0001, 0.05
EXACT_S = 2e-6  # Python keeps it in whole microseconds


class SwitchInterval:
    """Python's switch interval, which is short until another thread of the script is seen."""

    def __init__(self) -> None:
        self.made, self.alone = 0.0, True  # the short one that is set; 0.0 is none

    def sampled(self, *, imports: bool, step_ns: int = 0) -> None:
        """A sample was taken, where a step usually takes so long; 0 is unknown.

        While modules are loaded, a short interval wakes the thread for nothing.
        """
        if imports:
            self.end()
        else:
            self.begin(max(SHORTEST_S, min(SHORT_S, OF_STEP * step_ns / 1e9)) if step_ns else SHORT_S)

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
