"""Choosing the best capture: one with all its steps after the warm-up ends the search."""

from __future__ import annotations

from . import state_file
from .tracing import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .captures import Capture
    from .tracing import Tracing

MOST_CAPTURES = 4  # Every window disturbs the run for a moment; a run of many short fits gets no more of them


def choose(window: Tracing, capture: Capture, *, complete: bool) -> None:
    """Keep the better of this capture and the one before; search on unless it is complete."""
    _keep_better(window, capture)
    window.capture = window.session = None
    window.leave = bool(window.plan["stop_after"] and complete)
    best = complete and not capture.record["contains_warmup"]  # no other could be better
    best = best or capture.good[0] >= window.plan["steps"]
    if best or window.captures >= MOST_CAPTURES or window.leave:
        window.rest()
    elif capture.source is not None:
        capture.source.alarm = max(capture.source.seen, window.plan["warmup"])
    if window.kept is capture:
        window.program.describe(last=window.state is DONE)
    state_file.save(window)


def _keep_better(window: Tracing, capture: Capture) -> None:
    """Make the capture the recording's if it is the best one so far; else remove its files."""
    if not capture.traced():
        if window.kept is None:  # what was tried; a note says why it failed
            window.log.state["window"] = capture.record
        capture.drop()
    elif window.kept is None or capture.good > window.kept.good:
        capture.keep()
        window.kept = capture
        window.log.state["window"] = capture.record
    else:
        capture.drop()
