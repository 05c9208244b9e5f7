"""Steps of a custom loop: from one `__next__` of its tf.data iterator to the following one.

An iterator is the training loop's when training happened between two of its `__next__`: an eager
`GradientTape.gradient`, or the call of a tf.function that took a gradient while it was traced. The
dataset is remembered over epochs, so that the first step of the next epoch is marked as well, and
loops over validation data are not.
"""

from __future__ import annotations

import weakref

from ..process.journal import guarded
from ..process.kept import threads
from ..process.stack import here
from ..window.steps import StepKind
from .call_loop import PATIENCE, CallLoops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import FrameType

    from ..window.steps import Marker, StepCounter
    from ..window.window import TraceWindow


DATA = StepKind.DATA

KEY = DATA, None  # All loops over datasets are one source


class ThreadLoops(threads._local):
    """Each thread's own loops: generators of tf.data iterate in threads of TensorFlow's."""

    def __init__(self, window: TraceWindow) -> None:
        self.loops = DataLoops(window)


class IteratorLoop:
    """One live eager iterator."""

    def __init__(self, key: Hashable) -> None:
        self.key = key  # what its dataset is known by, over epochs
        self.trained = 0  # how often since the last __next__
        self.idle = False  # a step of it did not train: no step unless one does
        self.marker: Marker | None = None

    def end_marker(self) -> Marker | None:
        """End the marker of the step under way, if there is one, and return it."""
        marker, self.marker = self.marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
        return marker


class DataLoops:
    """The loops of one thread."""

    def __init__(self, window: TraceWindow) -> None:
        self.window, self.log = window, window.log
        self.training_keys = window.training_keys  # all threads know them
        self.depth = 0  # > 0 inside a step of Keras or a `__next__`: iterators in there are inner
        self.live: dict[int, IteratorLoop] = {}  # by the iterator's id
        self.current: IteratorLoop | None = None  # the loop whose steps are counted
        self.function: object = None  # the outermost tf.function being called
        self.caller: FrameType | None = None  # what calls it
        self.calling = False  # one is being called, perhaps by Keras
        self.running = False  # something that trains is running
        self.calls = CallLoops(window, self)  # loops that have no iterator

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
                source = self._source()
                source.retract(marker, 1)
                self.window.loop_over(source)
        return self.current is not None

    def pending(self) -> bool:
        """Say whether an iterator is at hand that may prove to be the loop around all this."""
        return any(not loop.idle for loop in self.live.values())

    def _source(self) -> StepCounter:
        return self.window.source(DATA)

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
            source = self.window.sources.get(KEY) or self._source()  # one call of Python less
            loop.marker = source.begin(1)

    def _enter(self, iterator: object) -> IteratorLoop:
        """An iterator is seen for the first time."""
        key = self.window.registry.dataset_key(iterator)
        loop = self.live[id(iterator)] = IteratorLoop(key)
        # A loop that is left early drops its iterator: that, too, ends its last step.
        weakref.finalize(iterator, self.ended, id(iterator)).atexit = False
        return loop

    def _confirm(self, loop: IteratorLoop, iterator: object) -> None:
        """Training happened since the last `__next__` of this iterator."""
        window = self.window
        self.training_keys.add(loop.key)
        self.current = loop
        self.calls.contained()
        source = window.source(DATA, at=here)
        source.seen += 1  # the step that has just shown what this loop is
        source.calls += 1
        window.before_close.append(self._interrupted)
        window.registry.looped(iterator)
        window.announce(source, window.registry.cardinality(iterator) - source.seen)

    def _step_over(self, loop: IteratorLoop) -> None:
        """A step of the training loop is over; one that did not train was none."""
        marker = loop.end_marker()
        if not loop.trained:
            self._source().retract(marker, 1)
            self.current, loop.idle = None, True

    def _interrupted(self) -> None:
        """The window closes: a step that is still under way ends here."""
        loop = self.current
        if loop is None or loop.marker is None:
            return
        if loop.trained:  # the loop goes on, and is the loop still
            loop.end_marker()
        else:
            self._step_over(loop)

    @guarded("end of an iterator")
    def ended(self, identity: int) -> None:
        """The iterator is exhausted, or the loop was left and it is gone."""
        loop = self.live.pop(identity, None)
        if loop is not None and self.current is loop:
            self._step_over(loop)
            self.current = None
