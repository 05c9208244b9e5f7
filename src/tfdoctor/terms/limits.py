"""Limits of a process that reads what anybody may have made: a file that takes for ever costs this process alone.

The limits are those of the kernel, which need no help of what runs at the moment. They grow with the files that are
read, so that a large trace has what it needs.
"""

import os
import resource
import signal

MB = 2**20

BASE_BYTES = 1024 * MB  # Of memory: Python and its libraries, and what is made of a small recording
BYTES_PER_BYTE = 8  # Of memory for each byte of a file: a trace takes 6 at most (benchmarks/reading.py)
# Of time on a core. A trace of 100 MB takes 10 s where nothing else runs, and a stored report 0.1 s.
BASE_S, S_PER_FILE, S_PER_BYTE = 120.0, 0.1, 2.0 / MB
HIGHEST = 2**62  # What every kernel takes as a limit


TOO_MUCH_MEMORY = "Reading takes more memory than any file of its size needs: the recording is damaged."


class Room:
    """What this process may still use, where it has limits."""

    def __init__(self) -> None:
        self.limited = False

    def begin(self) -> None:
        """Limit this process; those that it starts inherit the limits."""
        self.limited = True
        # Each thread of OpenBLAS takes memory of its own, whatever there is to compute.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        _limit(resource.RLIMIT_DATA, BASE_BYTES)
        _limit(resource.RLIMIT_CPU, int(BASE_S))

    def add(self, nbytes: int) -> None:
        """Give the process what reading a file of this size may take."""
        if self.limited:
            _limit(resource.RLIMIT_DATA, _of(resource.RLIMIT_DATA) + BYTES_PER_BYTE * nbytes)
            seconds = S_PER_FILE + S_PER_BYTE * nbytes
            _limit(resource.RLIMIT_CPU, int(_of(resource.RLIMIT_CPU) + seconds))


ROOM = Room()  # That of this process


def lift() -> None:
    """Take the limit of memory off a process that has one of its own."""
    _limit(resource.RLIMIT_DATA, HIGHEST)


def why(code: int) -> str:
    """Return why there is no answer of a process that a signal has ended, as its exit code says."""
    if code == -signal.SIGXCPU:
        return "Reading takes longer than for any file of its size: the recording is damaged."
    ended = signal.Signals(-code).name
    return f"The process that read it was ended by {ended}: the recording is damaged, or memory ran out."


def _of(kind: int) -> int:
    soft, _ = resource.getrlimit(kind)
    return HIGHEST if soft == resource.RLIM_INFINITY else soft


def _limit(kind: int, most: int) -> None:
    """Set a limit, within what the user has set; it can be raised again."""
    _, hard = resource.getrlimit(kind)
    most = min(most, HIGHEST)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
