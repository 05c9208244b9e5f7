"""What a thread waits for that waits: for another thread, which works meanwhile, or for child processes."""

from __future__ import annotations

import threading

from ..process.kept import io, os, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

IDLE = 0.1  # Share of a core below which neither a thread nor the process works
# Ends of the files in which the innermost frame of a thread is that waits: in Python's locks, events and queues, as
# an idle one of a pool, or in a loop of asyncio's.
WAITING = (threading.__file__, "concurrent/futures/thread.py", "/selectors.py")
SLEEP = "time.sleep"  # What a line calls that looks again and again whether another thread is done


def waits(thread: int | None, frames: Mapping[int, FrameType]) -> bool:
    """Say whether a thread waits for others."""
    frame = frames.get(thread or 0)
    return frame is not None and frame.f_code.co_filename.endswith(WAITING)


def is_of_script(number: int) -> bool:
    """Say whether a thread was started in Python, and not by TensorFlow."""
    thread = started().get(number)
    if thread is None or isinstance(thread, threading._DummyThread):
        return False
    return not type(thread).__module__.startswith("tensorflow.")


def started() -> dict[int, threading.Thread]:
    """Return Python's objects of threads, without making one as `current_thread` would."""
    active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]  # private
    return active


class CPUTimes:
    """How long the process and its threads have worked, or waited for a core, between two looks; in ns."""

    def __init__(self) -> None:
        self.process = 0
        self.threads: dict[int, int] = {}  # so far
        self.spent: dict[int, int] = {}  # since the last look but one
        self.at = self.least = 0  # when that was, and what is little since the one before

    def look(self, now: int) -> None:
        """Look at the threads, once for each sample that needs it."""
        if now == self.at:
            return
        known, self.threads = self.threads, {}
        self.at, self.least = now, int(IDLE * (now - self.at))
        for number, thread in list(started().items()):
            if is_of_script(number):
                self.threads[number] = worked_ns(thread.native_id)
        self.spent = {number: ns - known.get(number, 0) for number, ns in self.threads.items()}

    def working(self, but: int | None, now: int) -> int | None:
        """Return the thread that has worked most, and more than a little, of all but one; None where none has."""
        self.look(now)
        others = {number: ns for number, ns in self.spent.items() if number != but}
        most = max(others, key=others.__getitem__, default=None)
        return most if most is not None and others[most] > self.least else None

    def awaits_children(self, ns: int, now: int) -> bool:
        """Say whether the process has children, and has hardly worked for so many ns up to now."""
        used = time.process_time_ns() - time.thread_time_ns()  # this thread takes the samples
        before, self.process = self.process, used
        if used - before >= IDLE * ns or not has_children():
            return False
        self.look(now)
        return max(self.spent.values(), default=0) <= self.least


def told(path: str) -> bytes:
    """Return what a file of Linux says; nothing where it is not there, as on another system."""
    try:
        with io.open(path, "rb") as file:
            content: bytes = file.read()
            return content
    except OSError:
        return b""


def worked_ns(number: int | None) -> int:
    """Return how long a thread has run, or waited for a core, by its number in Linux; 0 is unknown."""
    return sum(map(int, told(f"/proc/self/task/{number}/schedstat").split()[:2]))


def has_children() -> bool:
    """Say whether the process has a child that runs, and leave those that have ended to who waits for them."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is None or children() > 0
    except (OSError, AttributeError):  # it has none, or this is another system
        return False


def children() -> int:
    """Return how many processes run that the threads of this one have started."""
    found: list[bytes] = []
    for thread in list(started().values()):
        found += told(f"/proc/self/task/{thread.native_id}/children").split()  # of an ended one they are another's
    return sum(_runs(int(child)) for child in found)


def _runs(child: int) -> bool:
    """Say whether a process has not ended; one that has is there until its parent has asked for its code."""
    return told(f"/proc/{child}/stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])
