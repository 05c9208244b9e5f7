"""The part that a trial's run goes without: the calls of its entry points do nothing, or are answered at once.

- input: a tf.data pipeline hands out its first batches again and again. What is iterated is another dataset, the
  first batches, kept in memory, as often as the data has batches; so what iterates it needs no change.
- callback: Keras calls functions of its class that do nothing.
- metrics: those of compile are there with a result, but take in no batch; the loss stays.
- saving: checkpoints, models and weights are not written at a line, and not missed later.
- summaries: what would write one does nothing, eagerly and in graphs that are traced.
- evaluation and prediction at a line: from the last result, or from the training's metrics.
"""

from __future__ import annotations

import sys

from ..entry_points import CHECKPOINT, GRAPHS, SAVER
from ..process import tensorflow_api
from ..process.kept import os
from ..process.objects import leaves
from ..process.stack import line_number, user_file, user_frame, user_line
from ..run.loops import iterated_by_loop_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from types import FrameType

    from ..process.declared import Foreign, WithoutPlan
    from ..stream import Args, Enter, Held, Kwargs, Point, Stream

    Instead = Callable[[], object]

# Batches that are kept, and about the bytes that they may take: several, so that their shapes vary as usual.
BATCHES, MOST_BYTES = 8, 2**28
UNKNOWN_ROWS = 32  # What stands for a dimension that is not known before a batch is there
KEPT = "_tfdoctor_ready"  # Attribute of a dataset: the one with ready batches, for a loop is known by its dataset
INFINITE, UNKNOWN = -1, -2  # Cardinalities of tf.data
DEEPEST = 12  # Frames between the iteration of a dataset and what counts its batches

WHAT = ("epoch", "batch", "train_batch", "test_batch", "predict_batch", "test", "predict")
# Functions of callbacks that are replaced. `on_train_begin` stays: it sets attributes that scripts read after fit.
WORK = ("on_train_end", *(f"on_{what}_{when}" for what in WHAT for when in ("begin", "end")))


class TakenOut:
    """A part that is taken out; `reached` counts what was left out or answered at once."""

    def __init__(self, plan: WithoutPlan) -> None:
        self.part, self.name, self.length = plan["part"], plan["name"], plan["length"]
        self.at = tuple(plan["at"]) if plan["at"] else None
        self.reached, self.refused = 0, ""
        self.saved: dict[str | None, object] = {}  # what was to be saved last, by path
        self.known: dict[Hashable, object] = {}  # the last result of each kind of call

    def listen(self, stream: Stream) -> None:
        """Hear of the calls that are answered."""
        listeners: dict[str, dict[str, Callable[[Point], Enter]]] = {  # by `tfdoctor.terms.kinds.Part`
            "input": {"iteration": self._iterates},
            "callback": {"callbacks": lambda _: self._callbacks, "load": self._loads},
            "metrics": {"metrics": self._updates},
            "saving": {"save": lambda _: self._saves, "load": self._loads},
            "summaries": {"summary": self._summaries},
            "evaluation": {"evaluate": self._evaluates},
            "prediction": {"predict": self._predicts},
        }
        for event, listen in listeners[self.part].items():
            stream.on(event, listen)

    def is_at(self, frame: FrameType | None) -> bool:
        """Say whether a frame runs for the part: one without a line is everywhere."""
        return self.at is None or user_line(frame) == self.at

    def summary(self) -> dict[str, object]:
        """Return what the trial reads."""
        return {"reached": self.reached, "refused": self.refused}

    # Input

    def _iterates(self, point: Point) -> Enter:
        eager = tensorflow_api.context().executing_eagerly

        def enter(_: Held, args: Args, __: Kwargs, frame: FrameType) -> Instead | None:
            ready = self._ready(args[0], frame) if eager() else None
            return None if ready is None else lambda: point.original(ready)

        return enter

    def _ready(self, dataset: Foreign, frame: FrameType | None) -> Foreign:
        """Return the dataset with ready batches; None where the number of its batches is unknown."""
        attributes: Foreign = vars(dataset)
        known = attributes.get(KEPT)
        if known is None:
            length = int(dataset.cardinality())
            if length == UNKNOWN:
                length = self._counted(frame)
            if length == UNKNOWN:
                self.refused = "the number of batches of a pass over the data is unknown"
                return None
            size = max(1, sum(map(_bytes, leaves(dataset.element_spec))))
            few = max(1, min(BATCHES, MOST_BYTES // size))
            known = dataset.take(few).cache().repeat()
            known = attributes[KEPT] = known if length == INFINITE else known.take(length)
        self.reached += 1
        return known

    def _counted(self, frame: FrameType | None) -> int:
        """Return the length of data that does not know it: what iterates it counts, or the recording did."""
        at = frame
        for _ in range(DEEPEST):
            if at is None:
                break
            counts: Foreign = at.f_locals.get("self")
            if getattr(counts, "num_batches", None) or getattr(counts, "inferred_steps", None):
                return INFINITE
            at = at.f_back
        return self.length if self.length is not None and self._feeds(frame) else UNKNOWN

    def _feeds(self, frame: FrameType | None) -> bool:
        """Say whether what a frame iterates feeds the training: fit at its line, or the loop around it."""
        users, at = user_frame(frame), self.at
        if users is None or at is None or user_file(users.f_code.co_filename) != at[0]:
            return False
        line = at[1]
        here = line_number(users) == line
        return here or (isinstance(line, int) and iterated_by_loop_of(users.f_code, users.f_lasti, line))

    # Callbacks and metrics

    def _callbacks(self, _: Held, args: Args, kwargs: Kwargs, __: object) -> None:
        """Replace the work of those of the class, before a list looks at what they do."""
        for one in leaves(args[1] if len(args) > 1 else kwargs.get("callbacks")):
            if type(one).__name__ == self.name:
                for name in WORK:
                    if hasattr(one, name):
                        setattr(one, name, nothing)
                self.reached += 1

    def _updates(self, point: Point) -> Enter:
        built = "_built" if point.owner.__name__ == "MetricsContainer" else "built"  # whether they have been made

        def enter(_: Held, args: Args, kwargs: Kwargs, __: object) -> Instead:
            if not getattr(args[0], built, False):
                # Some make their variables at the first batch: they do in a graph that nobody runs.
                graphs: Foreign = sys.modules[GRAPHS]
                with graphs.FuncGraph("tfdoctor_without").as_default():
                    point.original(*args, **kwargs)
            self.reached += 1
            return nothing

        return enter

    # Files

    def _saves(self, _: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> Instead | None:
        """Return the path that was given, which is about what functions that write checkpoints return."""
        if not self.is_at(frame):
            return None
        self.reached += 1
        given = (one for one in [*args[1:], *kwargs.values()] if isinstance(one, (str, os.PathLike)))
        path = next(map(os.fsdecode, given), None)
        self.saved[path] = next(iter(args), None)
        return lambda: path

    def _loads(self, point: Point) -> Enter:
        """Who reads a file that was not written goes on with what there is."""
        at = 0 if point.name == "load_model" else 2 if point.module in SAVER else 1  # where the path is

        def enter(_: Held, args: Args, kwargs: Kwargs, __: object) -> Instead | None:
            given = [*args, *kwargs.values()]
            path: Foreign = given[at] if at < len(given) else None
            if not self.reached or not _is_missing(path):
                return None
            if point.name == "load_model":  # a model that is unknown is not made up
                model = self.saved.get(os.fsdecode(path))
                return None if model is None else lambda: model
            return (lambda: point.original(args[0], None)) if point.module in CHECKPOINT else nothing

        return enter

    def _summaries(self, point: Point) -> Enter:
        of_tensorflow = tensorflow_api.of_tensorflow
        instead: dict[str, Instead] = {  # as without a writer; a flush is an operation, unless these run at once
            "write": lambda: of_tensorflow("framework.constant_op").constant(value=False),
            "flush": lambda: of_tensorflow("ops.control_flow_ops").no_op(),
        }

        def enter(*_: object) -> Instead:
            self.reached += 1
            return instead.get(point.name, nothing)

        return enter

    # Evaluation and prediction

    def _evaluates(self, point: Point) -> Enter:
        def enter(held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> Instead | None:
            if not self.is_at(frame):
                return None
            key = point.name, id(args[0]), bool(kwargs.get("return_dict"))
            if key not in self.known:
                trained = of_training(args[0], kwargs)
                if trained is not None:
                    self.known[key] = trained
            return self._answer(held, key)

        return enter

    def _predicts(self, point: Point) -> Enter:
        def enter(held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> Instead | None:
            if not self.is_at(frame):
                return None
            shapes = _shapes(args[1:], kwargs)
            if shapes is None:
                self.refused = "its arguments have no shapes that could be compared"
                return None
            return self._answer(held, (point.name, id(args[0]), shapes))

        return enter

    def _answer(self, held: Held, key: Hashable) -> Instead | None:
        """Return the known result of a call; of one that is made after all, it answers the next ones."""
        if key not in self.known:
            held.append((self._result, key))
            return None
        self.reached += 1
        answer = _copy(self.known[key])
        return lambda: answer

    def _result(self, key: Hashable, result: object, _: object) -> None:
        copied = _copy(result)
        if copied is not None:
            self.known[key] = copied


def _bytes(leaf: Foreign) -> int:
    """Return about how many bytes a tensor of a batch takes."""
    shape: Foreign = getattr(leaf, "shape", None)
    dtype: Foreign = getattr(leaf, "dtype", None)
    elements = 1
    for dimension in [None] if getattr(shape, "rank", None) is None else shape.as_list():
        elements *= UNKNOWN_ROWS if dimension is None else dimension
    return int(elements * (getattr(dtype, "size", None) or 1))


def nothing(*_: object, **__: object) -> None:
    """Do nothing, and tell Keras that this is the default: then it does not even prepare what it would pass."""


nothing._is_default = True  # type: ignore[attr-defined]  # as Keras marks its own


def _is_missing(path: object) -> bool:
    """Say whether a path is that of no file, and of no checkpoint."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    return not os.path.exists(text) and not os.path.exists(text + ".index")


def of_training(model: Foreign, kwargs: dict[str, object]) -> object:
    """Return the metrics of the training in the form of an evaluation; None where that may have others."""
    own = getattr(type(model).test_step, "__module__", "").startswith("keras.")
    flat = getattr(model, "_flatten_metrics_in_order", None)
    trained = getattr(getattr(model, "optimizer", None), "iterations", None)
    if not own or flat is None or trained is None or not int(trained):
        return None
    logs = {name: float(value) for name, value in model.get_metrics_result().items()}
    return logs if kwargs.get("return_dict") else flat(logs)


def _shapes(args: Sequence[object], kwargs: dict[str, object]) -> Hashable:
    """Return the shapes and types of the arrays of a call, and its other values; None where one has none."""
    found: list[Hashable] = []
    for leaf in leaves([*args, *map(list, sorted(kwargs.items()))]):
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            found.append((tuple(leaf.shape), str(leaf.dtype)))
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            found.append(leaf)
        else:
            return None
    return tuple(found)


def _copy(result: object) -> object:
    """Return a copy of a result, which the script may change; None of what cannot be copied."""
    if isinstance(result, dict):
        return {name: _copy(value) for name, value in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result)(map(_copy, result)) if type(result) in (list, tuple) else None
    if isinstance(result, (bool, int, float, str)):
        return result
    copied = getattr(result, "copy", None)
    return copied() if copied is not None and hasattr(result, "dtype") else None
