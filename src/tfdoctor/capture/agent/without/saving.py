"""Training without saving at a line: checkpoints, models and weights are not written, and not missed later."""

from __future__ import annotations

import functools
import sys

from ..process.frames import UP, hide
from ..process.kept import os
from ..process.keras_dialects import KERAS_2
from . import missing_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

# Functions that write, by module and class; "" is the module itself.
SAVES = {
    "keras.src.saving.saving_api": (("", "save_model"), ("", "save_weights")),
    "tensorflow.python.checkpoint.checkpoint": (("Checkpoint", "save"), ("Checkpoint", "write")),
    "tensorflow.python.checkpoint.checkpoint_management": (("CheckpointManager", "save"),),
    "tensorflow.python.saved_model.save": (("", "save"),),
    "tensorflow.python.training.saver": (("Saver", "save"),),
    **dict.fromkeys(KERAS_2, (("Model", "save"), ("Model", "save_weights"))),
}


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""
    patches = {module: [functools.partial(_patch, out=out, names=names)] for module, names in SAVES.items()}
    return missing_files.merged(patches, missing_files.hooks(out))


def _patch(module: Foreign, out: TakenOut, names: Sequence[tuple[str, str]]) -> None:
    for owner, name in names:
        of = getattr(module, owner, None) if owner else module
        if of is not None and hasattr(of, name):
            _skip(out, of, name)


def _skip(out: TakenOut, owner: Foreign, name: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def save(*args: object, **kwargs: object) -> object:
        if not out.is_at(sys._getframe(UP)):
            return original(*args, **kwargs)
        out.reached += 1
        path = _path(args, kwargs)
        missing_files.remember(path, args[:1])
        return path

    setattr(owner, name, hide(save))


def _path(args: Sequence[object], kwargs: dict[str, object]) -> str | None:
    """Return the path that was given, which is about what functions that write checkpoints return."""
    given = [*args[1:], *kwargs.values()]
    paths = (os.fsdecode(one) for one in given if isinstance(one, (str, os.PathLike)))
    return next(paths, None)
