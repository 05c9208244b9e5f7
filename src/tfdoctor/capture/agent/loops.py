"""The loops of a thread that train, by what shows their steps to Python while no function of Keras runs them.

A loop over a dataset has a step from one `__next__` of its tf.data iterator to the following one. It is the
training loop's when training happened between two of them: an eager `GradientTape.gradient`, or the call of a
tf.function that took a gradient while it was traced. The dataset is remembered over epochs, so that the first step
of the next epoch is marked as well, and loops over validation data are not.

`for _ in range(n): train_step(x)` shows nothing but the repeated call, or the gradient. When a loop over a dataset
contains these, that loop is the step.

Where no step is seen from Python, a thread opens and closes windows by time.
"""

from __future__ import annotations

import weakref

from .process.all_threads import OtherThreads, OwnThread
from .process.budget import FEWEST_CALLS
from .process.journal import guarded
from .process.kept import threads, time
from .process.objects import LOOPS
from .process.stack import here, user_line, way_here, way_of
from .process.tensorflow_api import in_use
from .window.steps import StepKind
from .window.window import COST, DONE, PROFILED, SAMPLING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import FrameType

    from .process.declared import TraceMarker
    from .process.objects import Marks
    from .window.steps import StepCounter
    from .window.window import TraceWindow

DATA, FUNCTION, GRADIENT, GRAPH = StepKind.DATA, StepKind.FUNCTION, StepKind.GRADIENT, StepKind.GRAPH
KEY = DATA, None  # All loops over datasets are one source

# Calls to wait for the next `__next__` of an iterator that is at hand: its loop may be the outer one.
PATIENCE = 100
EVERY_S = 0.1  # How often that thread looks
LONG_CALL_S = 1.0  # A loop inside a tf.function that has run for so long is past its warm-up
AT_WORK_S = 10.0  # `--for` begins so long after TensorFlow began to work when no step is seen
GRAPH_SECONDS = 3.0  # How long to trace a loop inside a tf.function, whose steps nobody sees from Python


class ThreadLoops(threads._local):
    """Each thread's own loops: generators of tf.data iterate in threads of TensorFlow's."""

    def __init__(self, window: TraceWindow) -> None:
        self.loops = TrainingLoops(window)


class IteratorLoop:
    """One live eager iterator."""

    def __init__(self, key: Hashable) -> None:
        self.key = key  # what its dataset is known by, over epochs
        self.trained = 0  # how often since the last __next__
        self.idle = False  # a step of it did not train: no step unless one does
        self.marker: TraceMarker | None = None

    def end_marker(self) -> TraceMarker | None:
        """End the marker of the step under way, if there is one, and return it."""
        marker, self.marker = self.marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
        return marker


class TrainingLoops:
    """The loops of one thread, and what is under way on it."""

    def __init__(self, window: TraceWindow) -> None:
        self.window, self.log = window, window.log
        self.training_keys = window.training_keys  # all threads know them
        self.depth = 0  # > 0 inside a step of Keras or a `__next__`: iterators in there are inner
        self.live: dict[int, IteratorLoop] = {}  # by the iterator's id
        self.current: IteratorLoop | None = None  # the loop whose steps are counted
        self.function: object = None  # the outermost tf.function being called
        self.caller: FrameType | None = None  # what calls it
        self.running = False  # something that trains is running
        # The marker, if any, of each source's eager gradient that came last:
        self.open: dict[StepCounter, TraceMarker | None] = {}
        self.counted: list[StepCounter] = []  # those of calls while an iterator was at hand
        self.called: tuple[StepCounter, TraceMarker | None] | None = None  # the call that is running
        window.before_close.append(self.over)

    # Training events

    def run_begins(self, marks: Marks, caller: FrameType) -> None:
        """A function that trains is about to run; `marks` are those of its trace, `caller` is what called it."""
        window, self.called = self.window, None
        if LOOPS in marks:
            window.looping = time.monotonic(), threads.get_ident()
        if self.current is not None:
            return
        if LOOPS in marks:  # all steps are inside: there is a window by time only
            source = window.source(GRAPH, way_of(caller), here)
            if window.state is WAITING and source.calls:
                window.open_for(source, window.plan.get("seconds") or GRAPH_SECONDS)
            source.called(traced=window.state in PROFILED)
            self.called = source, None
            return
        key = FUNCTION, way_of(caller)
        source = window.sources.get(key) or window.source(*key, here)
        self.called = source, self._begin(source)

    def run_over(self, *, failed: bool) -> None:
        """Close the step after its call returned; a failed call does not count as one."""
        called, self.called = self.called, None
        self.window.looping = None
        if called is not None and called[0].kind is not GRAPH and (failed or called[1] is not None):
            called[0].over(called[1], failed=failed)
        if self.live and not failed:
            self.training()

    def gradient(self) -> None:
        """A gradient was asked for outside of every function: one step ends and another begins."""
        if self.training():
            return
        source = self.window.source(GRADIENT, way_here(), here)
        source.over(self.open.pop(source, None))
        self.open[source] = self._begin(source)

    def _begin(self, source: StepCounter) -> TraceMarker | None:
        """Begin a step, unless an iterator at hand may prove to be the outer loop."""
        if self.live and source.seen < PATIENCE and any(not loop.idle for loop in self.live.values()):
            self.counted.append(source)
            source.count(1)
            return None
        if self.counted:
            self.counted.clear()
        return source.begin(1)

    def training(self) -> bool:
        """Note a training event; say whether a loop known to train contains it."""
        for live in self.live.values():
            live.trained += 1
        loop = self.current
        if loop is not None and loop.trained > PATIENCE:
            # Training goes on without this iterator: its loop was left, and something keeps it alive.
            self.current, loop.trained, loop.idle = None, 0, True
            marker = loop.end_marker()
            if marker is not None:
                source = self.window.source(DATA)
                source.retract(marker, 1)
                self.window.loop_over(source)
        return self.current is not None

    # Iterators

    @guarded("iterator")
    def before(self, iterator: object) -> None:
        """A `__next__` begins: the step before it is over."""
        loop = self.live.get(id(iterator)) or self._enter(iterator)
        if self.current is loop:
            self._step_over(loop)
        elif self.current is None and loop.trained:
            self._confirm(loop, iterator)
        elif self.current is None and not loop.idle and loop.key in self.training_keys:
            self.current = loop
            self.window.registry.looped(iterator)
        loop.trained = 0
        if self.current is loop:
            source = self.window.sources.get(KEY) or self.window.source(DATA)  # one call of Python less
            loop.marker = source.begin(1)

    def _enter(self, iterator: object) -> IteratorLoop:
        key = self.window.registry.dataset_key(iterator)
        loop = self.live[id(iterator)] = IteratorLoop(key)
        # A loop that is left early drops its iterator: that, too, ends its last step.
        weakref.finalize(iterator, self.ended, id(iterator)).atexit = False
        return loop

    def _confirm(self, loop: IteratorLoop, iterator: object) -> None:
        """Training happened since the last `__next__` of this iterator: the calls of late were no steps."""
        window = self.window
        self.training_keys.add(loop.key)
        self.current = loop
        for counted in self.counted:
            counted.retract(None, 1)
        self.counted.clear()
        source = window.source(DATA, at=here)
        source.seen += 1  # the step that has just shown what this loop is
        source.calls += 1
        window.registry.looped(iterator)
        window.announce(source, window.registry.cardinality(iterator) - source.seen)

    def _step_over(self, loop: IteratorLoop) -> None:
        """A step of the training loop is over; one that did not train was none."""
        marker = loop.end_marker()
        if not loop.trained:
            self.window.source(DATA).retract(marker, 1)
            self.current, loop.idle = None, True

    @guarded("end of an iterator")
    def ended(self, identity: int) -> None:
        """The iterator is exhausted, or the loop was left and it is gone."""
        loop = self.live.pop(identity, None)
        if loop is not None and self.current is loop:
            self._step_over(loop)
            self.current = None

    def over(self) -> None:
        """The window closes: the steps under way end here."""
        for source in list(self.open):
            source.over(self.open.pop(source, None))
        loop = self.current
        if loop is not None and loop.marker is not None:
            if loop.trained:  # the loop goes on, and is the loop still
                loop.end_marker()
            else:
                self._step_over(loop)


class Watch:
    """The thread that reads the clock, from when it is needed until there is nothing left to do."""

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
        if self.working_since is None and in_use():
            self.working_since = now
        if self.window.any_step():
            return False
        return self.working_since is not None and now - self.working_since >= AT_WORK_S
