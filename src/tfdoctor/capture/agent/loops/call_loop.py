"""Steps of loops without a dataset: repeated calls of a tf.function that trains, or eager gradients.

`for _ in range(n): train_step(x)` shows nothing but the call. A function trains when a gradient was
taken while it was traced. When a loop over a dataset contains the calls, that loop is the step.
"""

from __future__ import annotations

from ..process.kept import threads, time
from ..process.marks import LOOPS
from ..process.stack import here, way_here, way_of
from ..window.steps import StepKind
from ..window.window import PROFILED, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sized
    from types import FrameType
    from typing import Protocol

    from ..process.marks import Marks
    from ..window.steps import Marker, StepCounter
    from ..window.window import TraceWindow

    class OuterLoops(Protocol):
        """The loops over datasets of the same thread."""

        @property
        def current(self) -> object:
            """The loop known to train that is under way, or None."""

        @property
        def live(self) -> Sized:
            """The iterators at hand."""

        def training(self) -> bool:
            """Note a training event; say whether a loop known to train contains it."""

        def pending(self) -> bool:
            """Say whether an iterator at hand may prove to be the outer loop."""


FUNCTION, GRADIENT, GRAPH = StepKind.FUNCTION, StepKind.GRADIENT, StepKind.GRAPH

# Calls to wait for the next `__next__` of an iterator that is at hand: its loop may be the outer one.
PATIENCE = 100
GRAPH_SECONDS = 3.0  # How long to trace a loop inside a tf.function, whose steps nobody sees from Python


class CallLoops:
    """The repeated calls of one thread."""

    def __init__(self, window: TraceWindow, loops: OuterLoops) -> None:
        self.window, self.log = window, window.log
        self.loops = loops
        # The marker, if any, of each source's eager gradient that came last:
        self.open: dict[StepCounter, Marker | None] = {}
        self.counted: list[StepCounter] = []  # those of calls while an iterator was at hand
        self.called: tuple[StepCounter, Marker | None] | None = None  # the call that is running
        window.before_close.append(self.over)

    def enter(self, marks: Marks, caller: FrameType) -> None:
        """A function that trains is about to run; `marks` are those of its trace, `caller` is what called it."""
        window, self.called = self.window, None
        try:  # not `guarded`, here and in `leave`: each call of Python shows in a step of 2 ms
            if LOOPS in marks:
                window.looping = time.monotonic(), threads.get_ident()
            if self.loops.current is not None:
                return
            if LOOPS in marks:
                self.called = self._enter_graph_loop(caller)
                return
            key = FUNCTION, way_of(caller)
            source = window.sources.get(key) or window.source(*key, here)
            self.called = source, self._begin(source)
        except Exception as error:
            self.log.fault("call", error)

    def leave(self, *, failed: bool) -> None:
        """Close the step after its call returned; a failed call does not count as one."""
        called, self.called = self.called, None
        self.window.looping = None
        try:
            if called is not None and called[0].kind is not GRAPH:
                source, marker = called
                if marker is not None:
                    marker.__exit__(None, None, None)
                if failed:
                    source.retract(marker, 1)
            if self.loops.live and not failed:
                self.loops.training()
        except Exception as error:
            self.log.fault("call", error)

    def _enter_graph_loop(self, caller: FrameType) -> tuple[StepCounter, None]:
        """A call whose steps are all inside begins: there is a window by time only."""
        window = self.window
        source = window.source(GRAPH, way_of(caller), here)
        if window.state is WAITING and source.calls:
            window.open_for(source, window.plan.get("seconds") or GRAPH_SECONDS)
        source.called(traced=window.state in PROFILED)
        return source, None

    def gradient(self) -> None:
        """A gradient was asked for outside of every function: one step ends and another begins."""
        if self.loops.training():
            return
        source = self.window.source(GRADIENT, way_here(), here)
        self._over(source)
        self.open[source] = self._begin(source)

    def contained(self) -> None:
        """An iterator has proved to be the loop around the calls of late: they were no steps."""
        for source in self.counted:
            source.retract(None, 1)
        self.counted.clear()

    def over(self) -> None:
        """The window closes: the steps under way end here."""
        for source in list(self.open):
            self._over(source)

    def _over(self, source: StepCounter) -> None:
        """The step that this source's last gradient began is over."""
        marker = self.open.pop(source, None)
        if marker is not None:
            marker.__exit__(None, None, None)

    def _begin(self, source: StepCounter) -> Marker | None:
        """Begin a step, unless an iterator at hand may prove to be the outer loop."""
        if self.loops.live and self.loops.pending() and source.seen < PATIENCE:
            self.counted.append(source)
            source.count(1)
            return None
        if self.counted:
            self.counted.clear()
        return source.begin(1)
