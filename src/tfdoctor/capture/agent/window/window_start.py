"""Opening the window: at a step, or for a time."""

from __future__ import annotations

from ..process.kept import time
from . import state_file
from .captures import Capture
from .collectives import UnsafeError
from .planning import FIRST_LOOK, is_bounded, planned
from .profiler import Session
from .steps import NEVER
from .tracing import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .steps import StepCounter
    from .tracing import Tracing

MOST_REFUSALS = 5  # How often to ask again for a profiler that somebody else has

USERS_OWN = "the steps that could be traced had a profiler of the script's own, such as RunOptions.FULL_TRACE"

NO_PROFILER = "the profiler could not be started: the script did not import all of TensorFlow (import tensorflow)"


def prepare(window: Tracing, source: StepCounter) -> None:
    """A window may open some calls later: what is learnt before it costs it no time."""
    source.alarm = source.opens
    for get_ready in window.before_window:
        get_ready(source)


def open_at(window: Tracing, source: StepCounter, number: int, k: int) -> None:
    """Trace from this step on."""
    if window.lent:
        source.alarm = source.seen
        lacks(window, USERS_OWN)
        return
    with window.own_work():
        capture = _start(window, source, window.plan.get("seconds"))
        if capture is None:
            return
        first = number
        if not source.marks:  # the framework has begun its marker already: the next is the first
            first, capture.calls = number + k, -1
        capture.begin(source, first)
        window.stop = NEVER if window.deadline else first + planned(window, k)
        if is_bounded(window):
            window.ask_cost = first + FIRST_LOOK * k
        for follow in window.after_open:
            follow(source)
        state_file.save(window)


def open_for(window: Tracing, source: StepCounter | None, seconds: float) -> None:
    """Trace for a time, whatever is seen meanwhile."""
    with window.lock, window.own_work():
        if window.state is WAITING and _start(window, source, seconds) is not None:
            state_file.save(window)


def opened(window: Tracing, capture: Capture, session: Session) -> None:
    """A profiler is running."""
    window.enter(OPEN)
    window.capture, window.session = capture, session
    window.captures += 1
    window.stop, window.ask_cost, window.deadline = NEVER, NEVER, None
    if capture.source is None:
        for source in window.sources.values():
            source.alarm = 0
    for lacking in ("trace", "window"):
        window.log.forgive(lacking)


def _start(window: Tracing, source: StepCounter | None, seconds: float | None) -> Capture | None:
    """Start the profiler and return the capture; the recording keeps why it could not."""
    prepare, window.before_open = window.before_open, []
    for callback in prepare:
        callback()
    capture = Capture(window.log.out, window.captures, source, window.plan["warmup"])
    if window.profiler is None:
        _refused(window, source, NO_PROFILER)
        return None
    began = time.perf_counter()
    try:
        session = Session.start(window.profiler, capture.folder)
    except Exception as error:  # AlreadyExistsError: somebody else profiles, and was first
        _refused(window, source, _why_refused(error))
        return None
    opened(window, capture, session)
    window.budget.opens(time.perf_counter() - began, source.usual_s() if source else None)
    if seconds:
        window.deadline = time.monotonic() + seconds
    for follow in window.after_start:
        follow()
    return capture


def _refused(window: Tracing, source: StepCounter | None, why: str) -> None:
    """Leave the profiler to whoever has it, and ask again later."""
    window.refusals += 1
    if source is not None:
        source.alarm = source.seen + window.plan["steps"]
    if window.refusals >= MOST_REFUSALS:
        window.rest()
    lacks(window, why)
    state_file.save(window)


def lacks(window: Tracing, why: str) -> None:
    """Note why there is no trace, as long as there is none."""
    if window.kept is None:
        window.log.forgive("trace")
        window.log.missing("trace", why)


def _why_refused(error: Exception) -> str:
    if isinstance(error, UnsafeError):
        return str(error)
    return (
        "the profiler could not be started, most likely because another profiler was running: "
        "run only one profiler at a time "
        f"({type(error).__name__}: {str(error)[:200]})"
    )
