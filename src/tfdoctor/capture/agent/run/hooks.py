"""What tells the clock which call is under way: hooks at the entry points of TensorFlow and Keras."""

from __future__ import annotations

import functools
import sys

from ..process import tensorflow_api
from ..process.frames import MARK, UP, hide
from ..process.imports import own_class
from ..process.journal import guarded
from ..process.kept import threads
from ..process.marks import LOOPS, TRAINS
from . import kinds
from .other_thread_traces import TracedElsewhere
from .phase_calls import PhaseCalls
from .waiting import is_of_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from ..process.journal import Journal
    from ..process.marks import Marks
    from ..window.window import TraceWindow
    from .call_times import Enter
    from .clock import CallClock
    from .places import CallSite
    from .recorder import RunRecorder

FUNCTIONS = (
    "tensorflow.python.eager.polymorphic_function.polymorphic_function",
    "tensorflow.python.eager.def_function",
)
CONCRETE = (
    "tensorflow.python.eager.polymorphic_function.concrete_function",
    "tensorflow.python.eager.polymorphic_function.monomorphic_function",
    "tensorflow.python.eager.function",
)
ITERATORS = {
    "tensorflow.python.data.ops.iterator_ops": "OwnedIterator",
    "tensorflow.python.distribute.input_lib": "DistributedIteratorBase",
}
GRAPHS = "tensorflow.python.framework.func_graph"
TAPES = "tensorflow.python.eager.backprop"

NONE: Marks = {}


class RunHooks:
    """The hooks of one process; they rest where nothing is recorded."""

    def __init__(self, recorder: RunRecorder, log: Journal, window: TraceWindow) -> None:
        self.clock: CallClock = recorder.clock
        self.log, self.window = log, window
        self.phases = PhaseCalls(self.clock, log)

    def hooks(self) -> Hooks:
        """Return what to patch in which module."""
        found = self.phases.hooks()
        function = own_class("Function", self._patch_calls)
        found.update((module, [function]) for module in FUNCTIONS)
        concrete = own_class("ConcreteFunction", self._patch_runs)
        found.update((module, [concrete]) for module in CONCRETE)
        for module, kind in ITERATORS.items():
            found[module] = [functools.partial(self._patch_iterator, name=kind)]
        return {**found, GRAPHS: [self._patch_graphs], TAPES: [self._patch_tape]}

    # tf.functions and gradients

    def _patch_calls(self, kind: Foreign) -> None:
        """Have the clock know the calls of tf.functions; each step comes by, what repeats by a way of its own."""
        original, clock, window = kind.__call__, self.clock, self.window
        repeats, beneath = clock.repeats, _beneath(original)

        @functools.wraps(original)
        def __call__(function: Foreign, *args: object, **kwargs: object) -> object:
            call = beneath if window.quiet else original
            if (clock.thread != threads.get_ident() and not clock.follows()) or clock.inside:
                return call(function, *args, **kwargs)
            part, frame = clock.running, sys._getframe(UP)  # of a step of Keras
            again, entered = False, None
            try:  # from here on: a handler of a signal may raise between any two lines
                again = not part and repeats.again(function, frame)
                if part:
                    clock.inside, clock.trained = 1, None
                elif not again:
                    entered = self.function_begins(function._name, frame)
                return call(function, *args, **kwargs)
            except BaseException as error:
                self.function_fails(error, part=part)
                raise
            finally:
                clock.inside, clock.running = 0, part
                told = not part or clock.current.kind == kinds.TRACE
                if told and not (again and repeats.over()):
                    clock.caller, entered = frame, repeats.entered if again else entered
                    self.function_ends(entered, function, function._name, args, kwargs)

        kind.__call__ = hide(__call__)

    @guarded("run function")
    def function_begins(self, name: str, frame: FrameType | None) -> Enter | None:
        """An outermost call of a tf.function begins."""
        return self.clock.function_begins(name, frame)

    @guarded("run function")
    def function_fails(self, error: BaseException, *, part: bool) -> None:
        """An exception leaves it, which may be part of a step of Keras."""
        self.clock.fails(error, self.clock.current)
        if self.clock.trained is not None:
            self.clock.steps.retract()
        if not part:
            self.clock.abandon()

    @guarded("run function")
    def function_ends(
        self, entered: Enter | None, function: object, name: str, args: Sequence[object], kwargs: dict[str, object]
    ) -> None:
        """It is over."""
        self.clock.function_ends(entered, function, name, args, kwargs)

    def _patch_runs(self, kind: Foreign) -> None:
        original, clock, window = kind._call_flat, self.clock, self.window
        repeats, beneath, context = clock.repeats, _beneath(original), tensorflow_api.context()

        @functools.wraps(original)
        def _call_flat(function: Foreign, *args: object, **kwargs: object) -> object:
            if repeats.graph is not None and repeats.graph is not function:
                self.runs_another()
            inside: int = clock.inside and clock.thread == threads.get_ident()
            if clock.running or clock.thread is None or (inside and repeats.trains(function)):
                return (beneath if window.quiet else original)(function, *args, **kwargs)
            of_graph, outer = window.graph_marks.get(id(function.graph), NONE), None
            trains = TRAINS in of_graph and context.executing_eagerly() and clock.adopt()
            inside, source = clock.inside, "graph-loop" if LOOPS in of_graph else "repeated-call"
            if inside and trains:
                self.function_trains(source, function)
            elif inside and clock.current.at in clock.trained_at:
                self.function_tests()
            if inside or not trains:
                return original(function, *args, **kwargs)
            try:
                outer = self.step_begins(sys._getframe(UP), source, 1)
                return original(function, *args, **kwargs)
            except BaseException as error:
                self.step_fails(outer, error, part=False)
                raise
            finally:
                self.step_ends(outer)

        kind._call_flat = hide(_call_flat)

    @guarded("run function")
    def runs_another(self) -> None:
        """A graph runs that is not the one of the calls that are noted briefly; it may be another thread's."""
        if self.clock.ours() and self.clock.repeats.began:
            self.clock.repeats.runs_another()

    @guarded("run function")
    def function_tests(self) -> None:
        """The tf.function under way does not train, which it does in other calls."""
        if self.clock.ours() and tensorflow_api.context().executing_eagerly():
            self.clock.function_tests()

    @guarded("run step")
    def function_trains(self, source: str, concrete: object) -> None:
        """The tf.function under way trains."""
        self.clock.function_trains(source, concrete)

    @guarded("run step")
    def step_begins(self, frame: FrameType | None, source: str, k: int) -> CallSite | None:
        """A call that trains begins; None where it is part of another one."""
        clock = self.clock
        return clock.step_begins(frame, source, k) if clock.adopt() and not clock.running else None

    @guarded("run step")
    def step_ends(self, outer: CallSite | None) -> None:
        """It is over."""
        if outer is not None:
            self.clock.step_ends(outer)

    @guarded("run step")
    def step_ended(self, function: object, frame: FrameType, outer: CallSite | None, k: int) -> None:
        """A step of Keras was accounted for: the next call may be like it."""
        if outer is not None:
            self.clock.repeats.learn(function, frame, outer, k=k)

    @guarded("run step")
    def step_fails(self, outer: CallSite | None, error: BaseException, *, part: bool) -> None:
        """An exception ends it: it is none. It may be part of another one."""
        if outer is not None:
            self.clock.fails(error, self.clock.current)
            self.clock.steps.retract()
        if not part and self.clock.ours():
            self.clock.abandon()

    def _patch_graphs(self, module: Foreign) -> None:
        original, clock = module.func_graph_from_py_func, self.clock

        @functools.wraps(original)
        def func_graph_from_py_func(*args: object, **kwargs: object) -> object:
            if clock.thread != threads.get_ident() and not clock.follows():
                name = args[0] if args else kwargs.get("name", "")
                with TracedElsewhere(clock, self.log, str(name)):
                    return original(*args, **kwargs)
            self.trace_begins()
            graph = original(*args, **kwargs)
            self.graph_built(graph)
            return graph

        module.func_graph_from_py_func = hide(func_graph_from_py_func)

    @guarded("run trace")
    def trace_begins(self) -> None:
        """A graph is built."""
        self.clock.trace_begins()

    @guarded("run trace")
    def graph_built(self, graph: Foreign) -> None:
        """It is built, with operations, and variables that it uses."""
        elements = sum(variable.shape.num_elements() or 0 for variable in graph.variables)
        self.clock.graph_built(int(graph.version), int(elements))

    def _patch_tape(self, module: Foreign) -> None:
        kind, clock = module.GradientTape, self.clock
        original, eager = kind.gradient, tensorflow_api.context().executing_eagerly
        note = guarded("run step")(lambda own, frame: own.clock.step_at(frame))

        @functools.wraps(original)
        def gradient(tape: object, *args: object, **kwargs: object) -> object:
            thread = threads.get_ident()
            ours = clock.thread == thread or clock.follows()
            part = ours and (clock.inside or clock.running)
            if not part and eager() and (ours or (is_of_script(thread) and clock.adopt())):
                note(self, sys._getframe(UP))
            return original(tape, *args, **kwargs)

        kind.gradient = hide(gradient)

    # Iterators

    def _patch_iterator(self, module: Foreign, name: str) -> None:
        kind, clock = getattr(module, name), self.clock
        original, window, beneath = kind.__next__, self.window, _beneath(kind.__next__)
        note = guarded("run iterator")(lambda own: own.clock.pass_over())

        @functools.wraps(original)
        def __next__(iterator: object) -> object:
            try:
                return (beneath if window.quiet else original)(iterator)
            except StopIteration:
                if clock.thread == threads.get_ident():
                    note(self)
                raise

        kind.__next__ = hide(__next__)

    # Sessions

    @guarded("run session")
    def session_begins(
        self, graph: Foreign, frame: FrameType | None, *, trains: bool
    ) -> tuple[Enter | None, CallSite | None] | None:
        """A call of a session begins; it may train."""
        clock = self.clock
        if clock.thread is None or not (clock.adopt() if trains else clock.follows()):
            return None
        clock.graph = int(graph.version)
        if trains:
            return None, clock.step_begins(frame, "session-run", 1)
        return (clock.enter(kinds.FUNCTION, "Session.run", frame) if clock.opens() else None), None

    @guarded("run session")
    def session_fails(self, begun: tuple[Enter | None, CallSite | None] | None, error: BaseException) -> None:
        """An exception ends it."""
        if begun is not None:
            self.step_fails(begun[1], error, part=begun[1] is None)

    @guarded("run session")
    def session_ends(self, begun: tuple[Enter | None, CallSite | None] | None) -> None:
        """It is over."""
        entered, outer = begun or (None, None)
        if outer is not None:
            self.step_ends(outer)
        elif entered is not None and entered[2] in self.clock.places:
            self.clock.testing.add(sys._getframe(2))
            self.clock.switch(entered[0])


def _beneath(hooked: Callable[..., Foreign]) -> Callable[..., Foreign]:
    """Return what the window's hook does where that rests: the function without it."""
    code = getattr(hooked, "__code__", None)
    ours = code is not None and code.co_filename.endswith(MARK)
    return hooked.__wrapped__ if ours else hooked  # type: ignore[attr-defined]  # set by `wraps`
