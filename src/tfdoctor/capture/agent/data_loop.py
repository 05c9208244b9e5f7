"""Steps of a custom loop: from one `__next__` of its tf.data iterator to the following one.

An iterator is the training loop's when training happened between two of its `__next__`: an eager
`GradientTape.gradient`, or the call of a tf.function that took a gradient while it was traced. The
dataset is remembered over epochs, so that the first step of the next epoch is marked as well, and
loops over validation data are not.
"""

import threading
import weakref

from .call_loop import PATIENCE, Calls
from .journal import quietly
from .stack import here

SOURCE = "tf-data-loop"


class Local(threading.local):
    """Each thread's own loops: generators of tf.data iterate in threads of TensorFlow's."""

    def __init__(self, window):
        self.loops = Loops(window)


class Loop:
    """One live eager iterator."""

    def __init__(self, key):
        self.key = key  # what its dataset is known by, over epochs
        self.trained = 0  # how often since the last __next__
        self.idle = False  # a step of it did not train: no step unless one does
        self.marker = None


class Loops:
    """The loops of one thread."""

    def __init__(self, window):
        self.window = window
        self.training_keys = window.training_keys  # the datasets that train: all threads know
        self.depth = 0  # > 0 inside a step of Keras or a `__next__`: iterators in there are inner
        self.live = {}  # id(iterator): Loop
        self.current = None  # the loop whose steps are counted
        self.function = None  # the outermost tf.function being called
        self.running = False  # something that trains is running
        self.calls = Calls(window, self)  # of loops that have no iterator
        self.before = quietly("iterator", window.log)(self._before)
        self.ended = quietly("end of an iterator", window.log)(self._ended)

    def training(self):
        """Note a training event; say whether a loop known to train contains it."""
        for loop in self.live.values():
            loop.trained += 1
        if self.current is not None and self.current.trained > PATIENCE:
            self._left()
        return self.current is not None

    def pending(self):
        """Say whether an iterator is at hand that may prove to be the loop around all this."""
        return any(not loop.idle for loop in self.live.values())

    def _left(self):
        """Training goes on without this iterator: its loop was left, and something keeps it alive."""
        loop, self.current = self.current, None
        loop.trained, loop.idle = 0, True
        marker, loop.marker = loop.marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
            source = self.window.source(SOURCE)
            source.retract(marker, 1)
            self.window.loop_over(source)

    def _before(self, iterator):
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
            self._begin(loop)

    def _enter(self, iterator):
        """An iterator is seen for the first time."""
        loop = self.live[id(iterator)] = Loop(self.window.registry.dataset_key(iterator))
        # A loop that is left early drops its iterator: that, too, ends its last step.
        weakref.finalize(iterator, self.ended, id(iterator)).atexit = False
        return loop

    def _confirm(self, loop, iterator):
        """Training happened since the last `__next__` of this iterator."""
        window = self.window
        self.training_keys.add(loop.key)
        self.current = loop
        self.calls.contained()
        source = window.source(SOURCE, at=here)
        source.seen += 1  # the step that has just shown what this loop is
        source.calls += 1
        window.before_close.append(self._interrupted)
        window.registry.looped(iterator)
        window.announce(source, window.registry.cardinality(iterator) - source.seen)

    def _begin(self, loop):
        """A step of the training loop begins."""
        loop.marker = self.window.source(SOURCE).begin(1)

    def _step_over(self, loop):
        """A step of the training loop is over; one that did not train was none."""
        source = self.window.source(SOURCE)
        marker, loop.marker = loop.marker, None
        if marker is not None:
            marker.__exit__(None, None, None)
        if not loop.trained:
            source.retract(marker, 1)
            self.current, loop.idle = None, True

    def _interrupted(self):
        """The window closes: a step that is still under way ends here."""
        loop = self.current
        if loop is None or loop.marker is None:
            return
        if loop.trained:  # the loop goes on, and is the loop still
            loop.marker.__exit__(None, None, None)
            loop.marker = None
        else:
            self._step_over(loop)

    def _ended(self, identity):
        """The iterator is exhausted, or the loop was left and it is gone."""
        loop = self.live.pop(identity, None)
        if loop is not None and self.current is loop:
            self._step_over(loop)
            self.current = None
