"""What the process has read by system calls, as Linux counts it."""

from __future__ import annotations

COUNTERS = "/proc/self/io"
"""Of all threads of the process since it began; files, pipes and sockets alike."""


def read_so_far() -> tuple[int, int] | None:
    """Return the bytes and the calls of all reads so far; None where the system does not count them."""
    try:
        with open(COUNTERS, encoding="ascii") as lines:
            values = dict(line.split(":", 1) for line in lines)
        return int(values["rchar"]), int(values["syscr"])
    except (OSError, KeyError, ValueError):  # not Linux, or a kernel without these counters
        return None
