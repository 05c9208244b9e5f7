"""What tells the clock which call is under way: hooks at the entry points of TensorFlow and Keras."""

from __future__ import annotations

import functools
import sys
import weakref
from threading import get_ident

from ..process import by_identity, tensorflow_api
from ..process.frames import MARK, hide
from ..process.journal import guarded
from ..process.keras_dialects import KERAS_2, KERAS_3
from ..process.marks import LOOPS, TRAINS
from ..program.datasets import batch_of
from . import kinds
from .other_thread_traces import TracedElsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from ..process.by_identity import Notes
    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from ..process.journal import Journal
    from ..process.marks import Marks
    from ..window.tracing import Tracing
    from .clock import CallClock, Enter
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

CALLS = {
    "keras.src.trainers.trainer": (("Trainer", "compile", kinds.COMPILE),),
    "keras.src.saving.saving_api": (
        ("", "save_model", kinds.SAVE),
        ("", "save_weights", kinds.SAVE),
        ("", "load_model", kinds.BUILD),
        ("", "load_weights", kinds.BUILD),
    ),
    "keras.src.backend.common.global_state": (("", "clear_session", kinds.BUILD),),
    "tensorflow.python.checkpoint.checkpoint": (
        ("Checkpoint", "save", kinds.SAVE),
        ("Checkpoint", "write", kinds.SAVE),
        ("Checkpoint", "restore", kinds.BUILD),
        ("Checkpoint", "read", kinds.BUILD),
    ),
    "tensorflow.python.saved_model.save": (("", "save", kinds.SAVE),),
    "tensorflow.python.training.saver": (
        ("Saver", "save", kinds.SAVE),
        ("Saver", "restore", kinds.BUILD),
    ),
    **{
        f"{package}.preprocessing.{module}": ((kind, "adapt", kinds.ADAPT),)
        for package in ("keras.src.layers", "tf_keras.src.layers")
        for module, kind in (
            ("normalization", "Normalization"),
            ("discretization", "Discretization"),
            ("text_vectorization", "TextVectorization"),
            ("string_lookup", "StringLookup"),
            ("integer_lookup", "IntegerLookup"),
        )
    },
}
"""Functions that are one phase of the run: the class that has them, "" a module; their name, and their kind."""

TRAINERS = {
    "fit": kinds.FIT,
    "evaluate": kinds.EVALUATE,
    "predict": kinds.PREDICT,
    "test_on_batch": kinds.EVALUATE,
    "predict_on_batch": kinds.PREDICT,
}
"""Functions of models."""

ADAPT = ("data", "batch_size", "steps")
"""Parameters of a layer's adapt."""

INFINITE = -1
"""The cardinality of a dataset that has no end."""

OLD_MODELS = {
    "compile": kinds.COMPILE,
    "save": kinds.SAVE,
    "save_weights": kinds.SAVE,
    "load_weights": kinds.BUILD,
}
"""The same of Keras 2, whose models have them themselves."""

CALLBACKS = (
    "keras.src.callbacks.callback_list",
    "tf_keras.src.callbacks",
    "keras.src.callbacks",
    "keras.callbacks",
)

NONE: Marks = {}


class RunHooks:
    """The hooks of one process; they rest where nothing is recorded."""

    def __init__(self, recorder: RunRecorder, log: Journal, window: Tracing) -> None:
        self.clock: CallClock = recorder.clock
        self.log, self.window = log, window
        self.models: Notes[int] = {}
        self.met = 0

    def hooks(self) -> Hooks:
        """Return what to patch in which module."""
        found: dict[str, list[Callable[[Foreign], object]]] = {}

        def add(module: str, hook: Callable[[Foreign], object]) -> None:
            found.setdefault(module, []).append(hook)

        for module, calls in CALLS.items():
            add(module, functools.partial(self._patch_calls, calls=calls))
        add(KERAS_3, functools.partial(self._patch_model, name="TensorFlowTrainer", calls=TRAINERS))
        for module in KERAS_2:
            calls_2 = {**TRAINERS, **OLD_MODELS}
            add(module, functools.partial(self._patch_model, name="Model", calls=calls_2))
        for module in CALLBACKS:
            add(module, self._patch_epochs)
        for module in FUNCTIONS:
            add(module, self._patch_functions)
        for module in CONCRETE:
            add(module, self._patch_runs)
        for module, kind in ITERATORS.items():
            add(module, functools.partial(self._patch_iterator, name=kind))
        add(GRAPHS, self._patch_graphs)
        add(TAPES, self._patch_tape)
        return found

    @guarded("run call")
    def enter(self, kind: str, name: str, frame: FrameType | None) -> Enter | None:
        """A call begins; None where it is part of one of the same kind."""
        clock = self.clock
        if clock.current.kind == kind:
            return None
        return clock.enter(kind, name, frame)

    @guarded("run call")
    def leave(self, entered: Enter, told: dict[str, object] | None = None) -> None:
        """It is over."""
        self.clock.leave(entered, told)

    @guarded("run call")
    def fails(self, error: BaseException, entered: Enter) -> None:
        """An exception leaves it."""
        self.clock.fails(error, entered[2])

    # Calls that are one phase

    def _patch_calls(self, module: Foreign, calls: Sequence[tuple[str, str, str]]) -> None:
        for owner, name, kind in calls:
            of = getattr(module, owner, None) if owner else module
            if of is not None and name in vars(of):
                self._around(of, name, kind, f"{owner}.{name}" if owner else name)

    def _patch_model(self, module: Foreign, name: str, calls: dict[str, str]) -> None:
        model = getattr(module, name, None)
        for function, kind in calls.items():
            if model is not None and hasattr(model, function):
                self._around(model, function, kind, f"Model.{function}")

    def _around(self, owner: Foreign, name: str, kind: str, label: str) -> None:
        """Have the clock know a function's calls."""
        original, clock = getattr(owner, name), self.clock
        trains = kind == kinds.FIT
        tells, adapts, adapted = name in TRAINERS, kind == kinds.ADAPT, self.adapted

        @functools.wraps(original)
        def call(*args: object, **kwargs: object) -> object:
            if clock.thread != get_ident() and not (clock.adopt() if trains else clock.follows()):
                return original(*args, **kwargs)
            entered = self.enter(kind, label, sys._getframe(1))
            if entered is None:
                return original(*args, **kwargs)
            told = self._told(args, kwargs) if tells else adapted(args, kwargs) if adapts else None
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                self.fails(error, entered)
                raise
            finally:
                self.leave(entered, told)

        setattr(owner, name, hide(call))

    @guarded("run call")
    def _told(self, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> dict[str, object]:
        """Return which model is called, and with how many examples and batches, as far as the arguments tell."""
        told: dict[str, object] = {}
        if args:
            number = self.models.get(id(args[0]))
            if number is None:
                number = by_identity.keep(self.models, args[0], self.met)
                self.met += 1
            told["model"] = number
        given = args[1] if len(args) > 1 else kwargs.get("x")
        shape = getattr(given, "shape", None)
        examples = int(shape[0]) if shape else len(given) if isinstance(given, list) else None
        if examples is not None:
            batch = kwargs.get("batch_size")
            size = int(batch) if isinstance(batch, int) and batch > 0 else KERAS_BATCH
            told |= {"examples": examples, "steps": -(-examples // size)}
        return told

    @guarded("run call")
    def adapted(
        self, args: Sequence[Foreign], kwargs: dict[str, Foreign]
    ) -> dict[str, object] | None:
        """Return the batches and examples of the dataset that a layer is adapted to; None where unknown."""
        given: dict[str, Foreign] = {**dict(zip(ADAPT, args[1:])), **kwargs}  # noqa: B905 - Python 3.9
        data: Foreign = given.get("data")
        if not hasattr(data, "cardinality") or not tensorflow_api.context().executing_eagerly():
            return None
        rows, batches, most = batch_of(data), int(data.cardinality()), given.get("steps")
        if rows is None and getattr(getattr(data.element_spec, "shape", None), "rank", None) == 0:
            rows = 1  # single texts or numbers
        if isinstance(most, int) and (batches == INFINITE or batches > most):
            batches = most
        if not isinstance(rows, int) or batches < 0:
            return None
        return {"steps": batches, "examples": rows * batches}

    # Epochs of fit

    def _patch_epochs(self, module: Foreign) -> None:
        kind = getattr(module, "CallbackList", None)
        if kind is None or kind.__module__ != module.__name__:
            return
        clock, begins, ends = self.clock, kind.on_epoch_begin, kind.on_epoch_end
        note = self._epoch

        @functools.wraps(begins)
        def on_epoch_begin(callbacks: object, epoch: int, *args: object, **kwargs: object) -> None:
            if clock.thread == get_ident():
                note(lambda: clock.epoch_begins(int(epoch)))
            begins(callbacks, epoch, *args, **kwargs)

        @functools.wraps(ends)
        def on_epoch_end(callbacks: object, *args: object, **kwargs: object) -> None:
            ours = clock.thread == get_ident()
            if ours:
                note(clock.steps_over)
            ends(callbacks, *args, **kwargs)
            if ours:
                note(clock.epoch_ends)

        kind.on_epoch_begin, kind.on_epoch_end = hide(on_epoch_begin), hide(on_epoch_end)

    @guarded("epoch")
    def _epoch(self, note: Callable[[], object]) -> None:
        note()

    # tf.functions and gradients

    def _patch_functions(self, module: Foreign) -> None:
        kind = _own(module, "Function")
        if kind is not None:
            kind.__call__ = self._function_hook(kind.__call__)

    def _function_hook(self, original: Callable[..., object]) -> Callable[..., object]:
        """Return what calls a tf.function; each step comes by, so that what repeats has a way of its own."""
        clock = self.clock
        repeats, window, beneath = clock.repeats, self.window, _beneath(original)

        @functools.wraps(original)
        def __call__(function: Foreign, *args: object, **kwargs: object) -> object:
            call = beneath if window.quiet else original
            if (clock.thread != get_ident() and not clock.follows()) or clock.inside:
                return call(function, *args, **kwargs)
            part, frame = clock.running, sys._getframe(1)  # of a step of Keras
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
                if (not part or clock.current.kind == kinds.TRACE) and not (
                    again and repeats.over()
                ):
                    clock.caller, entered = frame, repeats.entered if again else entered
                    self.function_ends(entered, function, function._name, args, kwargs)

        return hide(__call__)

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
        self,
        entered: Enter | None,
        function: object,
        name: str,
        args: Sequence[object],
        kwargs: dict[str, object],
    ) -> None:
        """It is over."""
        self.clock.function_ends(entered, function, name, args, kwargs)

    def _patch_runs(self, module: Foreign) -> None:
        kind = _own(module, "ConcreteFunction")
        if kind is None:
            return
        original, clock, marks = kind._call_flat, self.clock, self.window.graph_marks
        repeats, window, beneath = clock.repeats, self.window, _beneath(original)
        other = guarded("run function")(lambda own: own.runs_another())
        eager = tensorflow_api.context().executing_eagerly

        @functools.wraps(original)
        def _call_flat(function: Foreign, *args: object, **kwargs: object) -> object:
            if (
                (repeats.graph is not None and repeats.graph is not function and other(self))
                or clock.running
                or clock.thread is None
                or (clock.inside and clock.thread == get_ident() and repeats.trains(function))
            ):
                return (beneath if window.quiet else original)(function, *args, **kwargs)
            of_graph = marks.get(id(function.graph), NONE)
            if TRAINS not in of_graph or not eager() or not clock.adopt():
                if clock.inside and clock.current.at in clock.trained_at:
                    self.function_tests()
                return original(function, *args, **kwargs)
            source = "graph-loop" if LOOPS in of_graph else "repeated-call"
            if clock.inside:
                self.function_trains(source, function)
                return original(function, *args, **kwargs)
            outer = None
            try:
                outer = self.step_begins(sys._getframe(1), source, 1)
                return original(function, *args, **kwargs)
            except BaseException as error:
                self.step_fails(outer, error, part=False)
                raise
            finally:
                self.step_ends(outer)

        kind._call_flat = hide(_call_flat)

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
    def step_ended(
        self, function: object, frame: FrameType, outer: CallSite | None, k: int
    ) -> None:
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
        note = guarded("run trace")(lambda own: own.clock.trace_begins())
        built = guarded("run trace")(lambda own, graph: own.clock.graph_built(*_size(graph)))

        @functools.wraps(original)
        def func_graph_from_py_func(*args: object, **kwargs: object) -> object:
            if clock.thread != get_ident() and not clock.follows():
                name = args[0] if args else kwargs.get("name", "")
                with TracedElsewhere(clock, self.log, str(name)):
                    return original(*args, **kwargs)
            note(self)
            graph = original(*args, **kwargs)
            built(self, graph)
            return graph

        module.func_graph_from_py_func = hide(func_graph_from_py_func)

    def _patch_tape(self, module: Foreign) -> None:
        kind, clock = module.GradientTape, self.clock
        original, eager = kind.gradient, tensorflow_api.context().executing_eagerly
        note = guarded("run step")(lambda own, frame: own.clock.step_at(frame))

        @functools.wraps(original)
        def gradient(tape: object, *args: object, **kwargs: object) -> object:
            ours = clock.thread == get_ident() or clock.follows()
            if ours and not clock.inside and not clock.running and eager():
                note(self, sys._getframe(1))
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
                if clock.thread == get_ident():
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
    def session_fails(
        self, begun: tuple[Enter | None, CallSite | None] | None, error: BaseException
    ) -> None:
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


KERAS_BATCH = 32
"""Examples of a batch where Keras is not told."""


class OwnWork:
    """A context: what tfdoctor does itself, such as starting the profiler, is none of the script's time."""

    def __init__(self, hooks: RunHooks) -> None:
        self.hooks = weakref.proxy(hooks)
        self.entered: Enter | None = None

    def __enter__(self) -> None:
        if self.hooks.clock.ours():
            self.entered = self.hooks.enter(kinds.PROFILER, "", None)

    def __exit__(self, *_: object) -> None:
        entered, self.entered = self.entered, None
        if entered is not None:
            self.hooks.leave(entered)


def _beneath(hooked: Callable[..., Foreign]) -> Callable[..., Foreign]:
    """Return what the window's hook does where that rests: the function without it."""
    code = getattr(hooked, "__code__", None)
    ours = code is not None and code.co_filename.endswith(MARK)
    return hooked.__wrapped__ if ours else hooked  # type: ignore[attr-defined]  # set by `wraps`


def _own(module: object, name: str) -> Foreign:
    """Return a class of a module; later versions keep the old module's name for what lives elsewhere."""
    kind = getattr(module, name, None)
    ours = kind is not None and kind.__module__ == getattr(module, "__name__", None)
    return kind if ours else None


def _size(graph: Foreign) -> tuple[int, int]:
    """Return how many operations a FuncGraph has, and how many elements the variables that it uses."""
    elements = sum(variable.shape.num_elements() or 0 for variable in graph.variables)
    return int(graph.version), int(elements)
