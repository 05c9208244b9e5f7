"""Files that were not written because a part was taken out: who reads them later goes on with what there is."""

from __future__ import annotations

import functools

from ..process.frames import hide
from ..process.kept import os
from ..process.keras_dialects import KERAS_2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..process.declared import Foreign
    from ..process.imports import Hook, Hooks
    from .taken_out import TakenOut

    Answer = Callable[[Sequence[Foreign], Callable[..., object]], object]

_saved: dict[str | None, object] = {}  # What was to be saved last, by path


def remember(path: str | None, what: Sequence[object]) -> None:
    """Note what was to be saved."""
    for one in what:
        _saved[path] = one


def merged(first: Hooks, second: Hooks) -> Hooks:
    """Return the hooks of both."""
    every: dict[str, list[Hook]] = {}
    for hooks in (first, second):
        for name, acts in hooks.items():
            every.setdefault(name, []).extend(acts)
    return every


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""

    def around(owner: str, name: str, at: int, answer: Answer) -> Hook:
        def patch(module: Foreign) -> None:
            of = getattr(module, owner, None) if owner else module
            if of is not None and hasattr(of, name):
                _around(out, of, name, at, answer)

        return patch

    return {
        "keras.src.saving.saving_api": [
            around("", "load_weights", 1, lambda _, __: None),
            around("", "load_model", 0, _model),
        ],
        "tensorflow.python.checkpoint.checkpoint": [
            around("Checkpoint", name, 1, lambda args, original: original(args[0], None))
            for name in ("restore", "read")
        ],
        "tensorflow.python.training.saver": [around("Saver", "restore", 2, lambda _, __: None)],
        **{name: [around("Model", "load_weights", 1, lambda _, __: None)] for name in KERAS_2},
    }


def _around(out: TakenOut, owner: Foreign, name: str, at: int, answer: Answer) -> None:
    """Answer a call whose path, argument number `at`, is that of no file."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def load(*args: object, **kwargs: object) -> object:
        given = [*args, *kwargs.values()]
        path = given[at] if at < len(given) else None
        if not out.reached or not _is_missing(path):
            return original(*args, **kwargs)
        return answer(given, original)

    setattr(owner, name, hide(load))


def _model(args: Sequence[Foreign], original: Callable[..., object]) -> object:
    """Return the model that was to be saved; one that is unknown is not made up."""
    return _saved.get(os.fsdecode(args[0])) or original(*args)


def _is_missing(path: object) -> bool:
    """Say whether a path is that of no file, and of no checkpoint."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    return not os.path.exists(text) and not os.path.exists(text + ".index")
