"""How much memory the C library has given out, which is what the profiler's events lie in until it stops."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MB = 1e6

PROBE = 100_000  # Bytes that are taken to see whether the C library is the one that gives out memory
# Of glibc's `struct mallinfo2`, all of them `size_t` (glibc 2.33 and later).
FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


def reader() -> Callable[[], float] | None:
    """Return what reads the MB in use; None where the C library does not tell."""
    if sys.platform != "linux":
        return None
    import ctypes  # costs, and is needed where the profiler starts

    class MallocInfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]  # as ctypes reads it

    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    ask.restype = MallocInfo

    def in_use() -> float:
        info = ask()
        return float(info.uordblks + info.hblkhd) / MB

    before, kept = in_use(), bytearray(PROBE)
    told = in_use() - before >= len(kept) / MB  # with another allocator, nothing is told
    return in_use if told else None
