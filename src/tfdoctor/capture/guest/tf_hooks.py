"""Where TensorFlow tells of custom loops: iterators, gradients and calls of tf.functions."""

import functools

from .data_loop import Local
from .frames import hide

ITERATORS = "tensorflow.python.data.ops.iterator_ops"
DISTRIBUTED = "tensorflow.python.distribute.input_lib"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
TAPES = "tensorflow.python.eager.backprop"


def hooks(window):
    """Return what to patch in which module."""
    local = window.local = Local(window)
    return {
        ITERATORS: [lambda module: patch_iterator(module.OwnedIterator, window, local)],
        DISTRIBUTED: [lambda module: patch_iterator(module.DistributedIteratorBase, window, local)],
        FUNCTIONS: [lambda module: patch_function(module.Function, window, local)],
        TAPES: [lambda module: patch_tape(module.GradientTape, window, local)],
    }


def patch_iterator(kind, window, local):
    """Have `__next__` tell before it runs, and when the data has ended."""
    from tensorflow.python.eager import context

    original, eager = kind.__next__, context.executing_eagerly

    @functools.wraps(original)
    def __next__(self):
        loops = local.loops
        if loops.depth or not eager():
            return original(self)
        loops.before(self)
        if window.leave:
            window.depart()
        loops.depth += 1
        try:
            return original(self)
        except StopIteration:
            loops.ended(id(self))
            raise
        finally:
            loops.depth -= 1

    kind.__next__ = hide(__next__)


def patch_function(function, window, local):
    """Keep the outermost tf.function being called, and note the calls of those that train."""
    original = function.__call__

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        loops = local.loops
        if loops.function is not None or loops.depth:
            return original(self, *args, **kwargs)
        loops.function = window.calling = self
        try:
            return original(self, *args, **kwargs)
        finally:
            loops.function = window.calling = None
            if "_tfdoctor_trains" in self.__dict__:
                loops.training()

    function.__call__ = hide(__call__)


def patch_tape(tape, window, local):
    """A gradient is a training event; while a tf.function is traced, it marks the function."""
    original = tape.gradient

    @functools.wraps(original)
    def gradient(self, *args, **kwargs):
        loops = local.loops
        function = loops.function or window.calling  # replicas are traced in threads of their own
        if function is not None:
            function.__dict__["_tfdoctor_trains"] = True
            window.registry.trains(function)
        elif not loops.depth:
            loops.training()
        return original(self, *args, **kwargs)

    tape.gradient = hide(gradient)
