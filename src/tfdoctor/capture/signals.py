"""Forwards signals from tfdoctor to the script, so that each reaches it exactly once.

Ctrl-C goes to every process of the terminal's group, including the script; `kill` may go to tfdoctor
alone. A witness distinguishes the two: a process of the same group that blocks these signals, so that
the kernel shows them as pending if they were sent to the whole group.
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

SPREAD_S = 0.02
"""The kernel signals the processes of a group within microseconds; a program that signals each process of a
job by its number takes a little longer."""

REPEAT_S = 1.0
"""A signal this soon after one to the group counts as sent to the group too: Ctrl-C pressed twice."""


class Witness:
    """A process of our group (`cat`, waiting for input) whose pending signals show what the group was sent."""

    def __init__(self) -> None:
        self.program = shutil.which("cat")
        self.pid, self.pipe = 0, -1
        self.spread: dict[int, float] = {}
        self._start()

    def _start(self) -> None:
        if self.program is None:
            return
        reading, self.pipe = os.pipe()
        streams = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            # A program that reads tfdoctor's output must not wait for this process.
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self.pid = os.posix_spawn(
                self.program, ["cat"], {}, file_actions=streams, setsigmask=WATCHED
            )
        except OSError:  # no process is left: the script needs the last one
            os.close(self.pipe)
        os.close(reading)

    def saw(self, number: int) -> bool:
        """Return whether a signal that we received was sent to the whole group."""
        if self.pid and time.monotonic() < self.spread.get(number, 0.0):
            return True
        time.sleep(SPREAD_S)
        if number not in self._pending():
            return False
        self.spread[number] = time.monotonic() + REPEAT_S
        self.dismiss()  # the signal stays pending: the next one needs a new witness
        self._start()
        return True

    def _pending(self) -> set[int]:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii", errors="replace")
        except OSError:  # no witness: forwarding Ctrl-C twice is worse than not at all
            return {signal.SIGINT}
        line = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
        bits = int(line.split()[1], 16)
        return {number for number in WATCHED if bits >> (number - 1) & 1}

    def dismiss(self) -> None:
        """End the witness; it also ends when tfdoctor does, even by SIGKILL."""
        if self.pid:
            os.close(self.pipe)
            os.waitpid(self.pid, 0)
            self.pid = 0


class Forwarder:
    """Forwards signals that were sent only to tfdoctor to the script."""

    def __init__(self, saw: Callable[[int], bool]) -> None:
        self.saw = saw
        self.send: Callable[[int], None] | None = None
        self.early: list[int] = []

    def handle(self, number: int, _frame: object) -> None:
        """Forward a signal, or queue it until the script runs."""
        if self.send is None:
            self.early.append(number)  # the script does not run yet, so it did not receive it
        elif not self.saw(number):
            self.send(number)

    def started(self, send: Callable[[int], None]) -> None:
        """Set the function that signals the script, which runs now, and forward the queued signals."""
        self.send = send
        for number in self.early:
            send(number)


@contextmanager
def forwarded() -> Iterator[Forwarder]:
    """Survive the signals that end the script, and forward them.

    Uses handlers, not SIG_IGN, which the script would inherit so that Ctrl-C could not stop it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Forwarder(lambda _number: True)
        return
    witness = Witness()
    forwarder = Forwarder(witness.saw)
    previous = {
        number: signal.signal(number, forwarder.handle)
        for number in WATCHED
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup: keep it ignored
    }
    try:
        yield forwarder
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        witness.dismiss()
