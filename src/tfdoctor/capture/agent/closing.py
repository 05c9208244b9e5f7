"""Closing the window: the steps under way end, the profiler stops, and the capture is judged."""

from __future__ import annotations

import time

from .choosing import choose
from .steps import OPEN_ENDED
from .tracing import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .captures import Capture
    from .profiler import Session
    from .tracing import Tracing

COMPLETE = ("steps", "time")
"""Reasons of a window that has got what it was opened for."""


def close(window: Tracing, reason: str, reached: int | None = None) -> None:
    """Stop the profiler and write what was learnt, at a step; a second call does nothing."""
    with window.lock:
        if window.state is not State.OPEN or not window.log.ours():
            return
        for end_step in window.before_close:
            end_step()
        for callback in window.after_steps:
            callback()
        capture, session = window.capture, window.session
        window.enter(State.WAITING)
        if capture is not None and session is not None:
            _end(window, capture, session, reason, reached)


def _end(
    window: Tracing, capture: Capture, session: Session, reason: str, reached: int | None
) -> None:
    source = capture.source
    if reached is None:
        reached = source.seen if source else 0
    reached = min(reached, window.stop)
    reason = "steps" if reached == window.stop else reason
    if source and source.kind in OPEN_ENDED and reason not in COMPLETE:
        capture.drop_last()
    capture.count_reads()
    try:
        session.stop(capture)
    except Exception as error:  # for example: the recording's folder is gone
        window.log.fault("profiler.stop", error)
        window.log.missing("trace", f"the trace could not be written: {error}")
    capture.end(reached, reason, session.stopped_ns or time.time_ns())
    choose(window, capture, complete=reason in COMPLETE)
