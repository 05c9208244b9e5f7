"""Steps of loops without a dataset: repeated calls of a tf.function that trains, or eager gradients.

`for _ in range(n): train_step(x)` shows nothing but the call. A function trains when a gradient was
taken while it was traced. When a loop over a dataset contains the calls, that loop is the step.
"""

from .stack import here, way_here

FUNCTION, GRADIENT, GRAPH = "repeated-call", "eager-gradient", "graph-loop"

TRAINS, LOOPS = "_tfdoctor_trains", "_tfdoctor_loops"
"""Marks on what a tf.function was traced to: it takes gradients; it does so inside a loop of its own."""

PATIENCE = 100
"""Calls to wait for the next `__next__` of an iterator that is at hand: its loop may be the outer one."""

GRAPH_SECONDS = 3.0
"""How long to trace a loop inside a tf.function, whose steps nobody sees from Python."""


class Calls:
    """The repeated calls of one thread."""

    def __init__(self, window, loops):
        self.window = window
        self.loops = loops
        self.open = {}  # source: the marker, if any, of the eager gradient that came last
        self.counted = []  # the sources of calls while an iterator was at hand
        self.called = None  # (source, marker) of the tf.function that is running
        window.before_close.append(self.over)

    def enter(self, marks):
        """A function that trains is about to run; `marks` are those of its trace."""
        self.called = None
        if self.loops.current is not None:
            return
        if LOOPS in marks:
            self.called = self._enter_graph_loop()
            return
        source = self.window.source(FUNCTION, way_here(), here)
        self.called = source, self._begin(source)

    def leave(self, *, failed):
        """It has run."""
        called, self.called = self.called, None
        if called is not None and called[0].name != GRAPH:
            source, marker = called
            if marker is not None:
                marker.__exit__(None, None, None)
            if failed:
                source.retract(marker, 1)
        if not failed:
            self.loops.training()

    def _enter_graph_loop(self):
        """A call whose steps are all inside begins: there is a window by time only."""
        source = self.window.source(GRAPH, way_here(), here)
        if self.window.state == "waiting" and source.calls:
            self.window.open_for(source, self.window.plan.get("seconds") or GRAPH_SECONDS)
        source.called(traced=self.window.state == "open")
        return source, None

    def gradient(self):
        """A gradient was asked for outside of every function: one step ends and another begins."""
        if self.loops.training():
            return
        source = self.window.source(GRADIENT, way_here(), here)
        self._over(source)
        self.open[source] = self._begin(source)

    def contained(self):
        """An iterator has proved to be the loop around the calls of late: they were no steps."""
        for source in self.counted:
            source.retract(None, 1)
        self.counted.clear()

    def over(self):
        """The window closes: the steps under way end here."""
        for source in list(self.open):
            self._over(source)

    def _over(self, source):
        """The step that this source's last gradient began is over."""
        if source not in self.open:
            return
        marker = self.open.pop(source)
        if marker is not None:
            marker.__exit__(None, None, None)

    def _begin(self, source):
        """Begin a step, unless an iterator at hand may prove to be the outer loop."""
        if self.loops.pending() and source.seen < PATIENCE:
            self.counted.append(source)
            return source.count(1)
        self.counted.clear()
        return source.begin(1)
