"""Evaluation and prediction at a line, answered at once: from the last result, or from the training's metrics."""

from __future__ import annotations

import functools
import sys

from ..process.frames import UP, hide
from ..process.journal import guarded
from ..process.keras_dialects import KERAS_2, KERAS_3
from ..process.nested import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

    Key = Callable[[Foreign, Sequence[object], dict[str, object]], Hashable]
    First = Callable[[Foreign, dict[str, object]], object]

MODELS = {KERAS_3: "TensorFlowTrainer", **dict.fromkeys(KERAS_2, "Model")}


def of_evaluation(out: TakenOut) -> Hooks:
    """Return what to patch in which module so that evaluations cost nothing."""
    answers = Answers(out, _evaluation, of_training)
    return _of_models(("evaluate", "test_on_batch"), answers)


def of_prediction(out: TakenOut) -> Hooks:
    """Return what to patch in which module so that a prediction of the same shapes is made once."""
    answers = Answers(out, _shapes, lambda _, __: None)
    return _of_models(("predict", "predict_on_batch"), answers)


def _of_models(names: Sequence[str], answers: Answers) -> Hooks:
    def patch(module: Foreign, name: str) -> None:
        kind = getattr(module, name, None)
        for function in names:
            if kind is not None and hasattr(kind, function):
                answers.patch(kind, function)

    return {module: [functools.partial(patch, name=name)] for module, name in MODELS.items()}


class Answers:
    """The last result of each kind of call; `key` tells kinds apart and is None for what must really be called."""

    def __init__(self, out: TakenOut, key: Key, first: First) -> None:
        self.out, self.log = out, out.log
        self.key, self.first = key, first
        self.known: dict[Hashable, object] = {}

    def patch(self, kind: Foreign, name: str) -> None:
        """Answer the calls of a function at the line of the part."""
        original = getattr(kind, name)

        @functools.wraps(original)
        def call(model: Foreign, *args: object, **kwargs: object) -> object:
            if not self.out.is_at(sys._getframe(UP)):
                return original(model, *args, **kwargs)
            key = self._key(name, model, args, kwargs)
            answer = self.answer(key, model, kwargs)
            if answer is None:
                answer = original(model, *args, **kwargs)
                self.note(key, answer)
            return answer

        setattr(kind, name, hide(call))

    @guarded("without")
    def _key(self, name: str, model: object, args: Sequence[object], kwargs: dict[str, object]) -> Hashable:
        own = self.key(model, args, kwargs)
        return None if own is None else (name, id(model), own)

    @guarded("without")
    def answer(self, key: Hashable, model: object, kwargs: dict[str, object]) -> object:
        """Return the answer to a call; None where it is not known yet."""
        if key is None:
            self.out.refused = "its arguments have no shapes that could be compared"
            return None
        if key not in self.known:
            first = self.first(model, kwargs)
            if first is None:
                return None
            self.known[key] = first
        self.out.reached += 1
        return _copy(self.known[key])

    @guarded("without")
    def note(self, key: Hashable, result: object) -> None:
        """A call was made after all: its result answers the next ones, where it can be copied."""
        if key is not None and _copy(result) is not None:
            self.known[key] = _copy(result)


def _evaluation(_: object, __: object, kwargs: dict[str, object]) -> Hashable:
    return bool(kwargs.get("return_dict"))


def of_training(model: Foreign, kwargs: dict[str, object]) -> object:
    """Return the metrics of the training in the form of an evaluation; None where that may have others."""
    own = getattr(type(model).test_step, "__module__", "").startswith("keras.")
    flat = getattr(model, "_flatten_metrics_in_order", None)
    trained = getattr(getattr(model, "optimizer", None), "iterations", None)
    if not own or flat is None or trained is None or not int(trained):
        return None
    logs = {name: float(value) for name, value in model.get_metrics_result().items()}
    return logs if kwargs.get("return_dict") else flat(logs)


def _shapes(_: object, args: Sequence[object], kwargs: dict[str, object]) -> Hashable:
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
