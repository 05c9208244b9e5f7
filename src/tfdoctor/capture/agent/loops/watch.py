"""A thread that opens and closes windows by time, where no step is seen from Python."""

from __future__ import annotations

from ..process.all_threads import OtherThreads, OwnThread
from ..process.budget import FEWEST_CALLS
from ..process.journal import guarded
from ..process.kept import time
from ..process.stack import user_line, way_of
from ..process.tensorflow_api import in_use
from ..window.steps import StepKind
from ..window.window import COST, DONE, PROFILED, SAMPLING, WAITING
from .training_loops import GRAPH_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..window.window import TraceWindow

EVERY_S = 0.1

LONG_CALL_S = 1.0  # A loop inside a tf.function that has run for so long is past its warm-up
AT_WORK_S = 10.0  # `--for` begins so long after TensorFlow began to work when no step is seen


class Watch:
    """Reads the clock, from when it is needed until there is nothing left to do."""

    def __init__(self, window: TraceWindow) -> None:
        self.window, self.log = window, window.log
        self.thread: OwnThread | None = None
        self.graphs = False  # there are functions with a training loop inside
        self.working_since: float | None = None

    def begin(self) -> None:
        """Start the thread, once."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = OwnThread(self._run)

    def begin_for_graphs(self) -> None:
        """A function with a training loop inside is known: its calls may be long."""
        self.graphs = True
        self.begin()

    def _run(self) -> None:
        """Look again and again, as long as there may be something to do."""
        window = self.window
        while window.log.ours() and window.state is not DONE:
            if window.state not in PROFILED and not self.graphs and not window.plan.get("seconds"):
                break
            time.sleep(EVERY_S)
            self.look()

    @guarded("watch")
    def look(self) -> None:
        """Open or close a window if it is time."""
        now = time.monotonic()
        if self.window.state in PROFILED:
            self._close(now)
        elif self.window.state is WAITING:
            self._open(now)

    def _close(self, now: float) -> None:
        """Close a window whose time is over, or whose loop was left: a trace must not grow for ever."""
        window = self.window
        capture = window.capture
        if window.state is SAMPLING:
            if window.samples.late(now):
                window.close("idle")
        elif window.deadline is not None:
            if now >= window.deadline:
                window.close("time")
            elif window.is_bounded() and not window.budget.more_calls(FEWEST_CALLS, 1):
                window.close(COST)
        elif capture is not None and capture.idle(now) and not window.borrowed():
            window.close("idle")

    def _open(self, now: float) -> None:
        """Open a window for what has been running long enough without a step."""
        window = self.window
        seconds = window.plan.get("seconds")
        if window.looping is not None:
            since, thread = window.looping
            if now - since >= LONG_CALL_S:
                with OtherThreads() as frames:
                    frame = frames.get(thread)
                    way, at = way_of(frame), user_line(frame)
                source = window.source(StepKind.GRAPH, way, lambda: at)
                window.open_for(source, seconds or GRAPH_SECONDS)
        elif seconds and self._unseen(now):
            window.open_for(None, seconds)

    def _unseen(self, now: float) -> bool:
        """Say whether TensorFlow has worked for long enough and shown no step."""
        if self.working_since is None and in_use():
            self.working_since = now
        if self.window.any_step():
            return False
        return self.working_since is not None and now - self.working_since >= AT_WORK_S
