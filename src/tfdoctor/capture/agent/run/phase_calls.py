"""Calls that are one phase of the run, such as fits, saves and loads, and the epochs of fits: hooks around them."""

from __future__ import annotations

import functools
import sys
import weakref

from ..process import by_identity, tensorflow_api
from ..process.frames import UP, hide
from ..process.imports import own_class
from ..process.journal import guarded
from ..process.kept import threads
from ..process.keras_dialects import KERAS_2, KERAS_3
from ..program.datasets import batch_of
from . import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from ..process.by_identity import Notes
    from ..process.declared import Foreign
    from ..process.imports import Hook
    from ..process.journal import Journal
    from .call_times import Enter
    from .clock import CallClock

# Functions that are one phase of the run: the class that has them, "" a module; their name, and their kind.
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
    "tensorflow.python.checkpoint.checkpoint_management": (("CheckpointManager", "save", kinds.SAVE),),
    "tensorflow.python.saved_model.save": (("", "save", kinds.SAVE),),
    "tensorflow.python.training.saver": (("Saver", "save", kinds.SAVE), ("Saver", "restore", kinds.BUILD)),
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

# Functions of models.
TRAINERS = {
    "fit": kinds.FIT,
    "evaluate": kinds.EVALUATE,
    "predict": kinds.PREDICT,
    "test_on_batch": kinds.EVALUATE,
    "predict_on_batch": kinds.PREDICT,
}

# Backends of Keras whose steps are not recorded, and the classes of their models.
OTHER_BACKENDS = {
    "jax": "JAXTrainer",
    "torch": "TorchTrainer",
    "numpy": "NumpyTrainer",
    "openvino": "OpenVINOTrainer",
}

ADAPT = ("data", "batch_size", "steps")  # Parameters of a layer's adapt
INFINITE = -1  # The cardinality of a dataset that has no end
# The same of Keras 2, whose models have them themselves.
OLD_MODELS = {"compile": kinds.COMPILE, "save": kinds.SAVE, "save_weights": kinds.SAVE, "load_weights": kinds.BUILD}

CALLBACKS = (
    "keras.src.callbacks.callback_list",
    "tf_keras.src.callbacks",
    "keras.src.callbacks",
    "keras.callbacks",
)

KERAS_BATCH = 32  # Examples of a batch where Keras is not told


class PhaseCalls:
    """The hooks around such calls, which have the clock know when each begins and is over."""

    def __init__(self, clock: CallClock, log: Journal) -> None:
        self.clock, self.log = clock, log
        self.models: Notes[int] = {}
        self.met = 0

    def hooks(self) -> dict[str, list[Hook]]:
        """Return what to patch in which module."""
        found: dict[str, list[Hook]] = {}
        for module, calls in CALLS.items():
            found[module] = [functools.partial(self._patch_calls, calls=calls)]
        found[KERAS_3] = [functools.partial(self._patch_model, name="TensorFlowTrainer", calls=TRAINERS)]
        for backend, name in OTHER_BACKENDS.items():
            found[f"keras.src.backend.{backend}.trainer"] = [
                functools.partial(self._patch_backend, backend=backend, name=name)
            ]
        calls_2 = {**TRAINERS, **OLD_MODELS}
        of_old = functools.partial(self._patch_model, name="Model", calls=calls_2)
        found.update((module, [of_old]) for module in KERAS_2)
        of_epochs = own_class("CallbackList", self._patch_epochs)
        found.update((module, [of_epochs]) for module in CALLBACKS)
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

    def _patch_backend(self, module: Foreign, backend: str, name: str) -> None:
        """Time the calls of another backend's models as a whole."""
        self.log.state["backend"] = backend
        as_a_whole = dict.fromkeys(("fit", "train_on_batch"), kinds.TRAIN)
        self._patch_model(module, name, {**TRAINERS, **as_a_whole})

    def _around(self, owner: Foreign, name: str, kind: str, label: str) -> None:
        """Have the clock know a function's calls."""
        original, clock = getattr(owner, name), self.clock
        trains = kind in {kinds.FIT, kinds.TRAIN}
        tells, adapts, adapted = name in TRAINERS, kind == kinds.ADAPT, self.adapted

        @functools.wraps(original)
        def call(*args: object, **kwargs: object) -> object:
            if clock.thread != threads.get_ident() and not (clock.adopt() if trains else clock.follows()):
                return original(*args, **kwargs)
            entered = self.enter(kind, label, sys._getframe(UP))
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
    def adapted(self, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> dict[str, object] | None:
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

    def _patch_epochs(self, kind: Foreign) -> None:
        clock, begins, ends = self.clock, kind.on_epoch_begin, kind.on_epoch_end
        note = self._epoch

        @functools.wraps(begins)
        def on_epoch_begin(callbacks: object, epoch: int, *args: object, **kwargs: object) -> None:
            if clock.thread == threads.get_ident():
                note(lambda: clock.epoch_begins(int(epoch)))
            begins(callbacks, epoch, *args, **kwargs)

        @functools.wraps(ends)
        def on_epoch_end(callbacks: object, *args: object, **kwargs: object) -> None:
            ours = clock.thread == threads.get_ident()
            if ours:
                note(clock.steps_over)
            ends(callbacks, *args, **kwargs)
            if ours:
                note(clock.epoch_ends)

        kind.on_epoch_begin, kind.on_epoch_end = hide(on_epoch_begin), hide(on_epoch_end)

    @guarded("epoch")
    def _epoch(self, note: Callable[[], object]) -> None:
        note()


class OwnWork:
    """A context: what tfdoctor does itself, such as starting the profiler, is none of the script's time."""

    def __init__(self, calls: PhaseCalls) -> None:
        self.calls = weakref.proxy(calls)
        self.entered: Enter | None = None

    def __enter__(self) -> None:
        if self.calls.clock.ours():
            self.entered = self.calls.enter(kinds.PROFILER, "", None)

    def __exit__(self, *_: object) -> None:
        entered, self.entered = self.entered, None
        if entered is not None:
            self.calls.leave(entered)
