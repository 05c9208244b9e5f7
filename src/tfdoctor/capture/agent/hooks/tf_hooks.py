"""Where TensorFlow shows loops: iterators, gradients and calls of tf.functions."""

from __future__ import annotations

import functools
import sys

from ..process import by_identity, tensorflow_api
from ..process.frames import UP, hide
from ..process.imports import own_class
from ..process.journal import guarded
from ..process.kept import time
from ..process.marks import LOOPS, TRAINS, while_traced
from ..window.window import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installed import Installed
    from ..loops.call_loop import CallLoops
    from ..process.declared import ConcreteFunctionClass, Foreign, FunctionClass, Graph, IteratorClass, TapeClass
    from ..process.imports import Hooks
    from ..process.marks import Marks

ITERATORS = "tensorflow.python.data.ops.iterator_ops"
DISTRIBUTED = "tensorflow.python.distribute.input_lib"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
CONCRETE = "tensorflow.python.eager.polymorphic_function.concrete_function"
CONCRETE_2_12 = "tensorflow.python.eager.polymorphic_function.monomorphic_function"
FUNCTIONS_2_9, CONCRETE_2_9 = ("tensorflow.python.eager.def_function", "tensorflow.python.eager.function")
TAPES = "tensorflow.python.eager.backprop"

NONE: Marks = {}  # The marks of a graph that takes no gradients


def hooks(installed: Installed) -> Hooks:
    """Return what to patch in which module."""
    function = own_class("Function", lambda kind: patch_calls(kind, installed))
    concrete = own_class("ConcreteFunction", lambda kind: patch_runs(kind, installed))
    return {
        ITERATORS: [lambda module: patch_iterator(module.OwnedIterator, installed)],
        DISTRIBUTED: [lambda module: patch_iterator(module.DistributedIteratorBase, installed)],
        FUNCTIONS: [function],
        FUNCTIONS_2_9: [function],
        CONCRETE: [concrete],
        CONCRETE_2_12: [concrete],
        CONCRETE_2_9: [concrete],
        TAPES: [lambda module: patch_tape(module.GradientTape, installed)],
    }


def patch_iterator(kind: IteratorClass, installed: Installed) -> None:
    """Notice each `__next__` before it runs, and the end of the data."""
    original, eager = kind.__next__, tensorflow_api.context().executing_eagerly
    window, lengths = installed.window, installed.lengths

    @functools.wraps(original)
    def __next__(self: object) -> object:
        if window.quiet:
            return original(self)
        loops = installed.local.loops
        if loops.depth or not eager():
            return original(self)
        loops.before(self)
        if window.leave:
            window.depart()
        loops.depth += 1
        try:
            batch = original(self)
        except StopIteration:
            loops.ended(id(self))
            raise
        finally:
            loops.depth -= 1
        if lengths.left and window.state is WAITING:
            lengths.batch(batch)
        return batch

    kind.__next__ = hide(__next__)


def patch_calls(kind: FunctionClass, installed: Installed) -> None:
    """Keep the outermost tf.function being called: what is traced meanwhile belongs to it."""
    original, window, traces = kind.__call__, installed.window, installed.window.traces
    arguments, registry, lengths = installed.arguments, installed.registry, installed.lengths

    @functools.wraps(original)
    def __call__(self: object, *args: object, **kwargs: object) -> object:
        if window.quiet:
            return original(self, *args, **kwargs)
        loops = installed.local.loops
        if loops.function is not None or loops.calling:
            return original(self, *args, **kwargs)
        own = not loops.depth  # else it is Keras's
        if own:
            loops.function = window.calling = self
            loops.caller = sys._getframe(UP)
        if own and arguments.wanted and registry.trainer() is self:
            arguments.note(args, kwargs, self)
        if own and lengths.calls_left and window.state is WAITING and registry.trainer() is self:
            lengths.call(args, kwargs)
        loops.calling, began_ns = True, time.perf_counter_ns()
        try:
            return original(self, *args, **kwargs)
        finally:
            loops.calling = False
            if own:
                loops.function = window.calling = loops.caller = None
            traces.called(self, began_ns, outside=window.state is not OPEN)

    kind.__call__ = hide(__call__)


def patch_runs(kind: ConcreteFunctionClass, installed: Installed) -> None:
    """Note the outermost runs of what trains: of a function's traces only those that take gradients.

    `step(x, y, training=False)` is another trace of the same function, and is no training.
    """
    original, eager = kind._call_flat, tensorflow_api.context().executing_eagerly
    window = installed.window

    @functools.wraps(original)
    def _call_flat(self: Foreign, *args: object, **kwargs: object) -> object:
        if window.quiet:
            return original(self, *args, **kwargs)
        loops = installed.local.loops
        outermost = not loops.running and not loops.depth and eager()
        marks = window.graph_marks.get(id(self.graph), NONE) if outermost else NONE
        if TRAINS not in marks:
            return original(self, *args, **kwargs)
        loops.running, failed = True, True
        try:
            loops.calls.enter(marks, loops.caller or sys._getframe(UP))
            result = original(self, *args, **kwargs)
            failed = False
        finally:
            loops.running = False
            loops.calls.leave(failed=failed)
        if window.returned is not None:
            window.returned(result)
        return result

    kind._call_flat = hide(_call_flat)


def patch_tape(kind: TapeClass, installed: Installed) -> None:
    """A gradient is a training event; while a tf.function is traced, it marks the function."""
    original, eager = kind.gradient, tensorflow_api.context().executing_eagerly
    default_graph = tensorflow_api.default_graph()
    window, gradients = installed.window, Gradients(installed)
    unused = installed.registry.unused_gradients

    @functools.wraps(original)
    def gradient(self: object, *args: object, **kwargs: object) -> object:
        if window.quiet:
            if not eager():
                gradients.mark(None, default_graph())
            return original(self, *args, **kwargs)
        loops = installed.local.loops
        function = loops.function or window.calling  # replicas are traced in threads of their own
        graph = None if eager() else default_graph()
        if function is not None or graph is not None:
            gradients.mark(function, graph)
            return original(self, *args, **kwargs)
        if not loops.depth:
            if window.returned is not None and args:
                window.returned(args[0])
            gradients.step(loops.calls)
            if window.leave:
                window.depart()
        take = functools.partial(original, self, *args, **kwargs)
        sources = args[1] if len(args) > 1 else kwargs.get("sources")
        return unused.taken(take, self, sources, traced=window.state is OPEN)

    kind.gradient = hide(gradient)


class Gradients:
    """Hooks for tf.GradientTape: an eager gradient is a step, one in a graph marks a function that trains."""

    def __init__(self, installed: Installed) -> None:
        self.window, self.log = installed.window, installed.log
        self.registry, self.watch = installed.registry, installed.watch

    @guarded("gradient")
    def step(self, calls: CallLoops) -> None:
        """One was taken outside of every function."""
        calls.gradient()

    @guarded("gradient")
    def mark(self, function: object, graph: Graph | None) -> None:
        """Note on a function, and on its graph, that it trains, and whether in a loop of its own."""
        marks, outermost = while_traced(graph)
        if outermost is not None:
            known = self.window.graph_marks.get(id(outermost), {})
            by_identity.keep(self.window.graph_marks, outermost, {**known, **marks})
        if function is not None:
            self.registry.trains(function)
        if LOOPS in marks:
            self.watch.begin_for_graphs()
