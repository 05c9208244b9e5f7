"""Where TensorFlow tells of loops: iterators, gradients and calls of tf.functions."""

import functools
import threading
import time

from .call_loop import LOOPS, TRAINS
from .data_loop import Local
from .frames import hide
from .journal import quietly

ITERATORS = "tensorflow.python.data.ops.iterator_ops"
DISTRIBUTED = "tensorflow.python.distribute.input_lib"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
CONCRETE = "tensorflow.python.eager.polymorphic_function.concrete_function"
FUNCTIONS_2_9, CONCRETE_2_9 = (
    "tensorflow.python.eager.def_function",
    "tensorflow.python.eager.function",
)
TAPES = "tensorflow.python.eager.backprop"

NONE = {}
"""The marks of a graph that takes no gradients."""

BODIES = ("Dataset_reduce", "Dataset_scan")
"""What AutoGraph makes of `for x in dataset`, by the names of the functions that tf.data traces."""


def hooks(window):
    """Return what to patch in which module."""
    window.local = Local(window)

    def function(module):
        patch_calls(module, window)

    def concrete(module):
        patch_runs(module, window)

    return {
        ITERATORS: [lambda module: patch_iterator(module.OwnedIterator, window)],
        DISTRIBUTED: [lambda module: patch_iterator(module.DistributedIteratorBase, window)],
        FUNCTIONS: [function],
        FUNCTIONS_2_9: [function],
        CONCRETE: [concrete],
        CONCRETE_2_9: [concrete],
        TAPES: [lambda module: patch_tape(module.GradientTape, window)],
    }


def patch_iterator(kind, window):
    """Have `__next__` tell before it runs, and when the data has ended."""
    from tensorflow.python.eager import context

    original, eager = kind.__next__, context.executing_eagerly

    @functools.wraps(original)
    def __next__(self):
        if window.quiet:
            return original(self)
        loops = window.local.loops
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


def patch_calls(module, window):
    """Keep the outermost tf.function being called: what is traced meanwhile belongs to it."""
    function = _own(module, "Function")
    if function is None:
        return
    original = function.__call__

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if window.quiet:
            return original(self, *args, **kwargs)
        loops = window.local.loops
        if loops.function is not None or loops.depth:
            return original(self, *args, **kwargs)
        loops.function = window.calling = self
        if window.fed.wanted and window.registry.trainer() is self:
            window.fed.note(args, kwargs)
        try:
            return original(self, *args, **kwargs)
        finally:
            loops.function = window.calling = None

    function.__call__ = hide(__call__)


def patch_runs(module, window):
    """Note the outermost runs of what trains: of a function's traces only those that take gradients.

    `step(x, y, training=False)` is another trace of the same function, and is no training.
    """
    from tensorflow.python.eager import context

    concrete = _own(module, "ConcreteFunction")
    if concrete is None:
        return
    original, eager = concrete._call_flat, context.executing_eagerly
    enter = quietly("call", window.log)(lambda calls, marks: calls.enter(marks))
    leave = quietly("call", window.log)(lambda calls, failed: calls.leave(failed=failed))

    @functools.wraps(original)
    def _call_flat(self, *args, **kwargs):
        if window.quiet:
            return original(self, *args, **kwargs)
        loops = window.local.loops
        if loops.running or loops.depth or not eager():
            return original(self, *args, **kwargs)
        marks = window.graph_marks.get(self.graph, NONE)
        if TRAINS not in marks:
            return original(self, *args, **kwargs)
        loops.running, failed = True, True
        window.running = marks, time.monotonic(), threading.get_ident()
        try:
            enter(loops.calls, marks)
            result = original(self, *args, **kwargs)
            failed = False
        finally:
            loops.running, window.running = False, None
            leave(loops.calls, failed)
        return result

    concrete._call_flat = hide(_call_flat)


def _own(module, name):
    """Return a class of a module; later versions keep the old module's name for what lives elsewhere."""
    kind = getattr(module, name, None)
    return kind if kind is not None and kind.__module__ == module.__name__ else None


def patch_tape(tape, window):
    """A gradient is a training event; while a tf.function is traced, it marks the function."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    original, eager = tape.gradient, context.executing_eagerly
    mark = quietly("gradient", window.log)(lambda function, graph: _mark(window, function, graph))
    stepped = quietly("gradient", window.log)(lambda loops: loops.calls.gradient())

    @functools.wraps(original)
    def gradient(self, *args, **kwargs):
        if window.quiet:
            return original(self, *args, **kwargs)
        loops = window.local.loops
        function = loops.function or window.calling  # replicas are traced in threads of their own
        graph = None if eager() else ops.get_default_graph()
        if function is not None or graph is not None:
            mark(function, graph)
        elif not loops.depth:
            stepped(loops)
            if window.leave:
                window.depart()
        return original(self, *args, **kwargs)

    tape.gradient = hide(gradient)


def _mark(window, function, graph):
    """Note on a function, and on its graph, that it trains, and whether in a loop of its own."""
    marks, outermost = {TRAINS: True}, graph
    while graph is not None:
        if type(graph).__name__ == "WhileBodyFuncGraph" or getattr(graph, "name", "").startswith(
            BODIES
        ):
            marks[LOOPS] = True
        outermost, graph = graph, getattr(graph, "outer_graph", None)
        if not hasattr(graph, "outer_graph"):
            break  # the eager world's own empty graph
    if outermost is not None:
        window.graph_marks.setdefault(outermost, {}).update(marks)
    if function is not None:
        window.registry.trains(function)
    if LOOPS in marks:
        window.watch.graphs = True
        window.watch.begin()
