"""Closing the window: the steps under way end, the profiler stops, and the capture is judged.

Where the stack was sampled too rarely, the profiler runs on for some calls, which are not measured.
"""

from __future__ import annotations

from ..process.kept import time
from .best_capture import choose
from .planning import COST
from .steps import OPEN_ENDED
from .tracing import OPEN, PROFILED, SAMPLING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tracing import Tracing

COMPLETE = ("steps", "time")  # Reasons of a window that has got what it was opened for


def close(window: Tracing, reason: str, reached: int | None = None) -> None:
    """Stop the profiler and write what was learnt, at a step; a second call does nothing."""
    with window.lock:
        if window.state not in PROFILED or not window.log.ours():
            return
        with window.own_work():
            if window.state is OPEN:  # a call that is sampled may go on, in another thread
                _end_measuring(window, reason, reached)
            _stop(window)


def sample_on(window: Tracing, reason: str, reached: int) -> None:
    """End what is measured, at a step, and let the profiler run on."""
    with window.own_work():
        _end_measuring(window, reason, reached)
        window.program.keep()
    window.enter(SAMPLING)
    for callback in window.before_sampling:
        callback()


def _end_measuring(window: Tracing, reason: str, reached: int | None) -> None:
    """End the steps under way, and what is measured in them."""
    for callback in (*window.before_close, *window.after_steps):
        callback()
    capture, session = window.capture, window.session
    if capture is None or session is None:
        return
    source = capture.source
    if source:
        source.marking = None
    if reached is None:
        reached = source.seen if source else 0
    reached = min(reached, window.stop)
    reason = "steps" if reached == window.stop else reason
    if source and source.kind in OPEN_ENDED and reason not in COMPLETE:
        capture.drop_last()
    capture.count_reads()
    session.finish()
    capture.end(reached, reason, session.stopped_ns or time.time_ns())
    if not session.borrowed:
        window.budget.measured(capture.record["steps"], reason)


def _stop(window: Tracing) -> None:
    for callback in window.before_stop:
        callback()
    capture, session, sampled = window.capture, window.session, window.state is SAMPLING
    window.enter(WAITING)
    if capture is None or session is None:
        return
    began = time.perf_counter()
    try:
        if sampled:
            session.finish()  # the last of the calls that were sampled ends here
        session.stop(capture)
    except Exception as error:  # for example: the recording's folder is gone
        window.log.fault("profiler.stop", error)
        window.log.missing("trace", f"the trace could not be written: {error}")
    if not session.borrowed:
        window.budget.stops(time.perf_counter() - began)
    by, by_time = capture.record["stopped_by"], window.deadline is not None
    choose(window, capture, complete=by in COMPLETE or (by_time and by == COST))
    window.program.forget()
