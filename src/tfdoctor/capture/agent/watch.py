"""A thread that opens and closes windows by time, where no step is seen from Python."""

import sys
import threading
import time

from .call_loop import GRAPH, GRAPH_SECONDS, LOOPS
from .journal import quietly
from .stack import user_line, way_of

EVERY_S = 0.1

LONG_CALL_S = 1.0
"""A loop inside a tf.function that has run for so long is past its warm-up."""

AT_WORK_S = 10.0
"""`--for` begins so long after TensorFlow began to work when no step is seen."""

CONTEXT = "tensorflow.python.eager.context"


class Watch:
    """Looks at the clock, from when it is needed until there is nothing left to do."""

    def __init__(self, window):
        self.window = window
        self.thread = None
        self.graphs = False  # there are functions with a training loop inside
        self.working_since = None
        self.look = quietly("watch", window.log)(self._look)

    def begin(self):
        """Start the thread, once."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=self._run, name="tfdoctor", daemon=True)
            self.thread.start()

    def _run(self):
        while self._needed():
            time.sleep(EVERY_S)
            self.look()

    def _needed(self):
        """Say whether there may be something to do."""
        window = self.window
        if not window.log.ours() or window.state == "done":
            return False
        return window.state == "open" or self.graphs or bool(window.plan.get("seconds"))

    def _look(self):
        window, now = self.window, time.monotonic()
        if window.state == "open":
            self._close(now)
        elif window.state == "waiting":
            self._open(now)

    def _close(self, now):
        """Close a window whose time is over, or whose loop was left: a trace must not grow for ever."""
        window = self.window
        take, session = window.take, window.session
        if window.deadline is not None:
            if now >= window.deadline:
                window.close("time")
        elif take is not None and session is not None and not session.borrowed and take.idle(now):
            window.close("idle")

    def _open(self, now):
        """Open a window for what has been running long enough without a step."""
        window = self.window
        seconds = window.plan.get("seconds")
        running = window.running
        if running is not None and LOOPS in running[0]:
            _, since, thread = running
            if now - since >= LONG_CALL_S:
                frame = sys._current_frames().get(thread)
                source = window.source(GRAPH, way_of(frame), lambda: user_line(frame))
                window.open_for(source, seconds or GRAPH_SECONDS)
        elif seconds and self._unseen(now):
            window.open_for(None, seconds)

    def _unseen(self, now):
        """Say whether TensorFlow has worked for long enough and shown no step."""
        if self.working_since is None and _at_work():
            self.working_since = now
        if any(source.seen for source in self.window.sources.values()):
            return False
        return self.working_since is not None and now - self.working_since >= AT_WORK_S


def _at_work():
    """Say whether TensorFlow is in use: its context is made, or a session of version 1 is."""
    context = sys.modules.get(CONTEXT)
    made = getattr(context, "_context", None)
    session = sys.modules.get("tensorflow.python.client.session")
    return bool(getattr(made, "_initialized", False)) or bool(
        getattr(session, "_tfdoctor_made", False)
    )
