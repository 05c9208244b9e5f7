"""Whether a thread waits for others: in Python's locks, events and queues, or as an idle one of a pool."""

from __future__ import annotations

import threading

from ..process.other_threads import OtherThreads

WAITING = (threading.Thread.join.__code__.co_filename, "concurrent/futures/thread.py")
"""Ends of the files in which the innermost frame of a thread is that waits."""


def waits(thread: int | None) -> bool:
    """Say whether a thread waits; looking takes some 20 us."""
    with OtherThreads() as frames:
        frame = frames.get(thread or 0)
        return frame is not None and frame.f_code.co_filename.endswith(WAITING)
