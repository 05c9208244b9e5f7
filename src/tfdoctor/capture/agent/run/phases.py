"""Calls that are one phase of the run, such as fits, saves and loads, and the epochs of fits."""

from __future__ import annotations

import functools
import sys

from ..entry_points import MODELS, OTHER_MODELS
from ..process.kept import threads
from ..process.objects import keep
from ..program.datasets import batch_of
from . import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..process.declared import Foreign
    from ..process.objects import Notes
    from ..stream import Args, Enter, Held, Kwargs, Point, Stream
    from .clock import CallClock, Entered

PHASES = {
    "fit": kinds.FIT,
    "train": kinds.TRAIN,
    "evaluate": kinds.EVALUATE,
    "predict": kinds.PREDICT,
    "compile": kinds.COMPILE,
    "clear": kinds.BUILD,
    "load": kinds.BUILD,
    "save": kinds.SAVE,
    "adapt": kinds.ADAPT,
}
TELLING = ("fit", "evaluate", "predict", "test_on_batch", "predict_on_batch")  # Of models, with their arguments

ADAPT = ("data", "batch_size", "steps")  # Parameters of a layer's adapt
INFINITE = -1  # The cardinality of a dataset that has no end
KERAS_BATCH = 32  # Examples of a batch where Keras is not told


class Phases:
    """Has the clock know when each such call begins and is over."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.models: Notes[int] = {}
        self.met = 0

    def listen(self, stream: Stream) -> None:
        """Hear of all such calls."""
        for event, kind in PHASES.items():
            stream.on(event, functools.partial(self.phase, kind=kind))
        stream.on("epoch begins", lambda _: self._epoch_begins)
        stream.on("epoch ends", lambda _: self._epoch_ends)

    def phase(self, point: Point, kind: str) -> Enter:
        """Return the listener of an entry point whose calls are of a kind."""
        clock, trains, name = self.clock, kind in {kinds.FIT, kinds.TRAIN}, point.name
        owner = "" if point.owner is sys.modules.get(point.module) else point.owner.__name__
        owner = "Model" if owner in {kind for _, kind in (*MODELS, *OTHER_MODELS)} else owner
        label = f"{owner}.{name}" if owner else name
        tells = self._told if name in TELLING else self.adapted if kind == kinds.ADAPT else None

        def enter(held: Held, args: Args, kwargs: Kwargs, frame: Foreign) -> None:
            if clock.thread != threads.get_ident() and not (clock.adopt() if trains else clock.follows()):
                return
            if clock.current.kind == kind:
                return  # it is part of one of the same kind
            entered = clock.enter(kind, label, frame)
            call: Foreign = [entered, None]
            held.append((self._over, call))
            call[1] = tells(args, kwargs) if tells is not None else None

        return enter

    def _over(self, call: tuple[Entered, dict[str, object] | None], _: object, __: object) -> None:
        self.clock.leave(*call)

    def _told(self, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> dict[str, object]:
        """Return which model is called, and with how many examples and batches, as far as the arguments tell."""
        told: dict[str, object] = {}
        if args:
            number = self.models.get(id(args[0]))
            if number is None:
                number = keep(self.models, args[0], self.met)
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

    def adapted(self, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> dict[str, object] | None:
        """Return the batches and examples of the dataset that a layer is adapted to; None where unknown."""
        given: dict[str, Foreign] = {**dict(zip(ADAPT, args[1:])), **kwargs}  # noqa: B905 - Python 3.9
        data: Foreign = given.get("data")
        context: Foreign = sys.modules.get("tensorflow.python.eager.context")
        if not hasattr(data, "cardinality") or context is None or not context.executing_eagerly():
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

    def _epoch_begins(self, *_: object) -> None:
        if self.clock.ours():
            self.clock.epoch_begins()

    def _epoch_ends(self, held: Held, _: Args, __: Kwargs, ___: object) -> None:
        if self.clock.ours():
            held.append((self._epoch_over, None))
            self.clock.steps_over()

    def _epoch_over(self, _: None, __: object, error: BaseException | None) -> None:
        if error is None:
            self.clock.epoch_ends()


class OwnWork:
    """A context: what tfdoctor does itself, such as starting the profiler, is none of the script's time."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.entered: Entered | None = None

    def __enter__(self) -> None:
        if self.clock.ours() and self.clock.current.kind != kinds.PROFILER:
            self.entered = self.clock.enter(kinds.PROFILER, "", None)

    def __exit__(self, *_: object) -> None:
        if self.entered is not None:
            self.clock.leave(self.entered)
