"""Callbacks of one class without their work: Keras calls functions of theirs that do nothing."""

from __future__ import annotations

import functools

from ..process.frames import hide
from ..process.journal import guarded
from . import missing_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

# Modules that have CallbackList: of Keras 3, of tf_keras, and of Keras 2.
LISTS = ("keras.src.callbacks.callback_list", "tf_keras.src.callbacks", "keras.src.callbacks", "keras.callbacks")

WHAT = ("epoch", "batch", "train_batch", "test_batch", "predict_batch", "test", "predict")
# Functions that are replaced. `on_train_begin` stays: it sets the attributes that scripts read after fit.
WORK = ("on_train_end", *(f"on_{what}_{when}" for what in WHAT for when in ("begin", "end")))


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""
    silent = SilentCallbacks(out)
    patches = {name: [silent.patch] for name in LISTS}
    return missing_files.merged(patches, missing_files.hooks(out))


class SilentCallbacks:
    """Silences the callbacks of a class as they come into a list."""

    def __init__(self, out: TakenOut) -> None:
        self.out, self.log = out, out.log

    def patch(self, module: Foreign) -> None:
        """Silence callbacks before a list looks at what they do."""
        kind = getattr(module, "CallbackList", None)
        if kind is None or kind.__module__ != module.__name__:
            return
        original = kind.__init__

        @functools.wraps(original)
        def __init__(self_: Foreign, callbacks: object = None, *args: object, **kwargs: object) -> None:
            self.silence(callbacks)
            original(self_, callbacks, *args, **kwargs)

        kind.__init__ = hide(__init__)

    @guarded("without")
    def silence(self, callbacks: object) -> None:
        """Replace the work of those of the class."""
        for one in _each(callbacks):
            if type(one).__name__ != self.out.name:
                continue
            for name in WORK:
                if hasattr(one, name):
                    setattr(one, name, nothing)
            self.out.reached += 1


def _each(callbacks: object) -> Iterator[object]:
    """Yield the callbacks of what fit was given: one, or a structure of several."""
    if isinstance(callbacks, dict):
        callbacks = list(callbacks.values())
    if isinstance(callbacks, (list, tuple, set)):
        for one in callbacks:
            yield from _each(one)
    elif callbacks is not None:
        yield callbacks


def nothing(*_: object, **__: object) -> None:
    """Do nothing, and tell Keras that this is the default: then it does not even prepare what it would pass."""


nothing._is_default = True  # type: ignore[attr-defined]  # as Keras marks its own
