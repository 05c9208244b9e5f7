"""Runs a program and leaves nothing of it: ``python leash.py PROGRAM ARGUMENT ...``.

It stays beside the program. When that ends, or tfdoctor does, however that is, it ends all that the program has
started. Only the standard library is imported.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # Values of linux/prctl.h

LIBC = ctypes.CDLL(None, use_errno=True)


def set_process(option: int, value: int) -> None:
    """Set a property of this process, which Linux has (prctl).

    Raises:
        OSError: it cannot be set.
    """
    if LIBC.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def end_with_parent(number: signal.Signals) -> None:
    """Get a signal when the parent ends, however that is."""
    parent = os.getppid()
    set_process(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def children() -> list[int]:
    """Return the processes whose parent this one is: also those that have outlived their own parent."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                status = Path(entry.path, "stat").read_bytes()
            except OSError:  # it has ended
                continue
            if int(status.rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(entry.name))
    return found


def end_children() -> None:
    """End all that the program has left behind, also what entered a session of its own."""
    while left := children():
        for number in left:
            os.kill(number, signal.SIGKILL)
        for number in left:
            os.waitpid(number, 0)


def end_all(_number: int, _frame: object) -> None:
    """End the program and all that it has started: tfdoctor is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_children()
    os.killpg(0, signal.SIGKILL)


def run(command: list[str]) -> int:
    """Run the program in a process group, end what it leaves behind, and return its exit code."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # the program may signal its group
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the program, whose end is waited for
    signal.signal(signal.SIGHUP, end_all)
    end_with_parent(signal.SIGHUP)
    set_process(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        end_with_parent(signal.SIGKILL)
        try:
            os.execvp(command[0], command)  # noqa: S606  # the user's program
        except OSError as error:
            print(f"tfdoctor: {command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201  # to the run's log
            os._exit(127)
    ended = 0
    while ended != child:  # of what the program leaves behind, nobody else learns the end
        ended, status = os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    end_children()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
