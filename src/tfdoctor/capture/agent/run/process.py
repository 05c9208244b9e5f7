"""When this process was started, and how it ends."""

from __future__ import annotations

import sys

from ..process.kept import io, os, time
from ..process.stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ..process.stack import Line

START_TIME = 19  # Where /proc/PID/stat has the start of the process, after its name: field 22
# Characters of an exception's message that are kept: TensorFlow first names the operation and its whole stack, and
# at the end says what was wrong.
BEGIN, END = 200, 800


def started_ns() -> int | None:
    """Return when this process was started, on the monotonic clock; None where the system does not say."""
    try:
        with io.open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        ticks = int(fields[START_TIME])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    age = since_boot - ticks / os.sysconf("SC_CLK_TCK")
    return time.perf_counter_ns() - int(max(0.0, age) * 1e9)


def last_error() -> BaseException | None:
    """Return the exception that is ending the interpreter, as far as it tells."""
    return getattr(sys, "last_value", None)


def of_end(error: BaseException | None) -> dict[str, object]:
    """Return how a process or a block ended that left an exception; None without."""
    if error is None:
        return {"why": "exit"}
    why = "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
    return {"why": why, **of_error(error)}


def of_error(error: BaseException) -> dict[str, object]:
    """Return an exception's class, its message as far as it is kept, and the user's line that raised it."""
    from ..process.masking import LONGEST, clean  # takes 10 ms of CPU, and few processes need it

    try:
        text = str(error).strip()
    except Exception:  # of the user's own class
        text = ""
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}{text[-LONGEST:]}"
    text = clean(text)  # before it is cut: half a token has no form
    if len(text) > BEGIN + END:
        text = f"{text[:BEGIN]} … {text[-END:]}"
    return {"error": type(error).__name__, "message": text, "at": _line(error.__traceback__)}


def _line(trace: TracebackType | None) -> Line | None:
    """Return the innermost line of the user's in a traceback."""
    found: Line | None = None
    while trace is not None:
        path = user_file(trace.tb_frame.f_code.co_filename)
        if path is not None:
            found = path, trace.tb_lineno
        trace = trace.tb_next
    return found
