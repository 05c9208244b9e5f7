"""Signals that come to tfdoctor while the script runs: each reaches the script exactly once.

Ctrl-C goes to every process of the terminal's group, the script among them; `kill` may mean tfdoctor
alone. A witness tells the two apart: a process of the same group that blocks these signals, so that
the kernel shows them as pending when they were sent to all.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SPREADS_S = 0.02
"""The kernel serves a group one process after the other, in microseconds; whoever signals each process of
a job by its number takes a little longer."""

ALIKE_S = 1.0
"""So soon after a signal to all, another of its kind is held for one as well: Ctrl-C is pressed twice."""


class Witness:
    """A process of our group (`cat`, waiting for input) that only shows which signals it was sent."""

    def __init__(self) -> None:
        self.program = shutil.which("cat")
        self.pid, self.pipe = 0, -1
        self.spread: dict[int, float] = {}
        self._call()

    def _call(self) -> None:
        if self.program is None:
            return
        reading, self.pipe = os.pipe()
        streams = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            # Whoever reads tfdoctor's output must not wait for this process.
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self.pid = os.posix_spawn(
                self.program, ["cat"], {}, file_actions=streams, setsigmask=WATCHED
            )
        except OSError:  # no more processes: the script shall have the last one
            os.close(self.pipe)
        os.close(reading)

    def saw(self, number: int) -> bool:
        """Say whether a signal that we were sent was sent to all of us."""
        if self.pid and time.monotonic() < self.spread.get(number, 0.0):
            return True
        time.sleep(SPREADS_S)
        if number not in self._pending():
            return False
        self.spread[number] = time.monotonic() + ALIKE_S
        self.dismiss()  # it keeps what it was sent: the next signal needs another one
        self._call()
        return True

    def _pending(self) -> set[int]:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii", errors="replace")
        except OSError:  # no witness: a forwarded Ctrl-C too many is worse than one too few
            return {signal.SIGINT}
        line = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
        bits = int(line.split()[1], 16)
        return {number for number in WATCHED if bits >> (number - 1) & 1}

    def dismiss(self) -> None:
        """End the witness; it also ends by itself when tfdoctor does, however that comes."""
        if self.pid:
            os.close(self.pipe)
            os.waitpid(self.pid, 0)
            self.pid = 0


class Forwarder:
    """Passes on to the script what was sent to tfdoctor alone."""

    def __init__(self, saw: Callable[[int], bool]) -> None:
        self.saw = saw
        self.send: Callable[[int], None] | None = None
        self.early: list[int] = []

    def handle(self, number: int, _frame: object) -> None:
        """Be the handler of a signal."""
        if self.send is None:
            self.early.append(number)  # there is no script yet that could have been sent it
        elif not self.saw(number):
            self.send(number)

    def started(self, send: Callable[[int], None]) -> None:
        """Name the way to the script, for it runs now."""
        self.send = send
        for number in self.early:
            send(number)


@contextmanager
def forwarded() -> Iterator[Forwarder]:
    """Outlive the signals that end the script, and pass them on.

    Handlers, not SIG_IGN: the script would inherit that, and never see Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Forwarder(lambda _number: True)
        return
    witness = Witness()
    forwarder = Forwarder(witness.saw)
    kept = {
        number: signal.signal(number, forwarder.handle)
        for number in WATCHED
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup: keep it ignored
    }
    try:
        yield forwarder
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        witness.dismiss()
