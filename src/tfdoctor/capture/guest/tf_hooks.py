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
    local = window.local = Local(window)
    marks = window.graph_marks

    def function(module):
        patch_calls(module, "Function", window, lambda self: self.__dict__)

    def concrete(module):
        patch_calls(module, "ConcreteFunction", window, lambda self: marks.get(self.graph, NONE))

    return {
        ITERATORS: [lambda module: patch_iterator(module.OwnedIterator, window, local)],
        DISTRIBUTED: [lambda module: patch_iterator(module.DistributedIteratorBase, window, local)],
        FUNCTIONS: [function],
        FUNCTIONS_2_9: [function],
        CONCRETE: [concrete],
        CONCRETE_2_9: [concrete],
        TAPES: [lambda module: patch_tape(module.GradientTape, window, local)],
    }


def patch_iterator(kind, window, local):
    """Have `__next__` tell before it runs, and when the data has ended."""
    from tensorflow.python.eager import context

    original, eager = kind.__next__, context.executing_eagerly

    @functools.wraps(original)
    def __next__(self):
        loops = local.loops
        if window.quiet or loops.depth or not eager():
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


def patch_calls(module, name, window, flags_of):
    """Keep the outermost tf.function being called, and note the calls of those that train."""
    function = getattr(module, name, None)
    if function is None or function.__module__ != module.__name__:
        return  # later versions keep the old module's name for what lives elsewhere
    original, local = function.__call__, window.local
    enter = quietly("call", window.log)(lambda calls, flags: calls.enter(flags))
    leave = quietly("call", window.log)(
        lambda calls, flags, failed: calls.leave(flags, failed=failed)
    )

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        loops = local.loops
        if window.quiet or loops.function is not None or loops.depth:
            return original(self, *args, **kwargs)
        failed = True
        loops.function = window.calling = self
        window.calling_since, window.calling_thread = time.monotonic(), threading.get_ident()
        try:
            flags = flags_of(self)
            if TRAINS in flags:
                enter(loops.calls, flags)
            result = original(self, *args, **kwargs)
            failed = False
        finally:
            loops.function = window.calling = None
            flags = flags_of(self)  # the call may have traced it
            if TRAINS in flags:
                leave(loops.calls, flags, failed)
        return result

    function.__call__ = hide(__call__)


def patch_tape(tape, window, local):
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
        loops = local.loops
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
        function.__dict__.update(marks)
        window.registry.trains(function)
    if LOOPS in marks:
        window.watch.graphs = True
        window.watch.begin()
