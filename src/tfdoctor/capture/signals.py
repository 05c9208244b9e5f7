"""Forwards signals from tfdoctor to the script, so that each reaches it exactly once, and outlives them.

Ctrl-C goes to every process of the terminal's group, including the script, and so do the signals of many
schedulers; `kill` may go to tfdoctor alone. A witness distinguishes the two: a process of the same group that
blocks these signals, so that the kernel shows them as pending if they were sent to the whole group.
"""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Signals of an error in our own code, after which nothing can go on.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
# Signals to a job in the background, which stops at once, and of its children.
JOB = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD)
# What a script may handle. Python ignores SIGPIPE and SIGXFSZ, and so do we.
WATCHED = frozenset(signal.valid_signals()) - {*FAULTS, *JOB, signal.SIGKILL, signal.SIGSTOP}
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # What ends tfdoctor while no script runs
# The kernel signals the processes of a group within microseconds; a program that signals each process of a job by
# its number takes a little longer.
SPREAD_S = 0.02


class Witness:
    """A process of our group (`cat`, waiting for input) whose pending signals show what the group was sent."""

    def __init__(self) -> None:
        self.program = shutil.which("cat")
        self.pid, self.pipe = 0, -1
        self.renew()

    def renew(self) -> None:
        """Start another one: what is pending stays so."""
        self.dismiss()
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
            self.pid = os.posix_spawn(self.program, ["cat"], {}, file_actions=streams, setsigmask=WATCHED)
        except OSError:  # no process is left: the script needs the last one
            os.close(self.pipe)
        os.close(reading)

    def pending(self) -> set[int]:
        """Return what was sent to the whole group since this process was started."""
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
    """Forwards signals that were sent only to tfdoctor to the script, and stops and goes on with it."""

    def __init__(self, witness: Witness | None = None) -> None:
        self.witness = witness
        self.script: int | None = None
        self.arrived: list[int] = []
        self.spread: set[int] = set()  # seen by a witness that has gone, before they reached us
        self.busy = self.stopping = self.stopped = False

    def handle(self, number: int, _frame: object) -> None:
        """Take a signal; one that comes before the script runs, or while others are looked at, waits."""
        self.arrived.append(number)
        if self.script and not self.busy:
            self.busy = True
            while self.arrived:
                time.sleep(SPREAD_S)
                self._forward()
            self.busy = False

    def _forward(self) -> None:
        numbers, self.arrived = self.arrived, []
        pending = self.witness.pending() if self.witness else set()
        for number in numbers:
            if number in self.spread:
                self.spread.remove(number)
            elif number not in pending:
                self._send(number)
        if pending and self.witness:
            self.witness.renew()
            self.spread |= pending.difference(numbers, self.arrived)
            for number in pending:  # meanwhile there was no witness
                while number in self.arrived:
                    self.arrived.remove(number)
        if signal.SIGTSTP in numbers:
            self.stopping = True
            self._stop_too()

    def _send(self, number: int) -> None:
        if self.script:
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                os.kill(self.script, number)

    def _stop_too(self) -> None:
        """Stop where Ctrl-Z has reached us and stopped the script, so that a shell sees its job stop."""
        if self.stopping and self.stopped:
            self.stopping = self.stopped = False
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self.handle)

    def started(self, pid: int) -> None:
        """Forward signals to the script, which runs now; those that came before have not reached it."""
        self.script = pid
        if self.arrived and self.witness:
            self.witness.renew()
        for number in self.arrived:
            self._send(number)
        self.arrived.clear()

    def wait(self, pid: int) -> int:
        """Wait until the script ends; return its return code."""
        ended = False
        while not ended:
            _, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)
            self.stopped = os.WIFSTOPPED(status)
            self._stop_too()
            ended = os.WIFEXITED(status) or os.WIFSIGNALED(status)
        self.script = None
        return os.waitstatus_to_exitcode(status)


@contextmanager
def forwarded() -> Iterator[Forwarder]:
    """Survive the signals that the script may handle, and forward them.

    Uses handlers, not SIG_IGN, which the script would inherit so that Ctrl-C could not stop it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Forwarder()
        return
    witness = Witness()
    forwarder = Forwarder(witness)
    previous = {
        number: signal.signal(number, forwarder.handle)
        for number in WATCHED
        # As it was: ignored (nohup), or taken by C (faulthandler).
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # nobody would learn how the script ends
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield forwarder
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        witness.dismiss()
        outlive()


def outlive() -> None:
    """Survive what a scheduler sends to a script that does not run, or no more: a report may be written."""
    for number in WATCHED.difference(ENDING, {signal.SIGTSTP}):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: None)
