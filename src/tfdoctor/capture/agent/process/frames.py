"""Frames of ours on the user's stack: taken out of tracebacks, and hidden wherever others hide their own.

A wrapper is on the stack while the user's code runs below it, so the messages of failed operations would name it,
and warnings be of it. TensorFlow and Keras leave out what lies in `tensorflow/python`, Python's warnings what is
a part of its import system, as far as the name of a file tells.
"""

from __future__ import annotations

import importlib.machinery
import sys

from .kept import os
from .stack import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

MARK = "(tfdoctor)"

# Earlier ones raise an exception again with the traceback that it had, whatever that is by then.
STRIPS = sys.version_info >= (3, 11)


def leave(error: BaseException) -> None:
    """Take the frames of ours at the head of its traceback out of an exception that is about to be raised again."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    error.__traceback__ = trace


def _is_ours(name: str) -> bool:
    return name.endswith(MARK) or name.startswith(OURS)


def named_apart(wrapper: F) -> F:
    """Give a function's frames a file name that says whose they are and is left out."""
    # Keras may be imported before TensorFlow, or without it.
    known = getattr(sys.modules.get("tensorflow"), "__spec__", None)
    spec = known or importlib.machinery.PathFinder.find_spec("tensorflow")
    origin = spec.origin if spec is not None else None
    folder = os.path.dirname(os.path.abspath(origin)) if origin else "tensorflow"
    function: Any = wrapper  # a plain function, whatever its declared type
    name = os.path.join(folder, "python", "importlib_bootstrap", MARK)
    function.__code__ = function.__code__.replace(co_filename=name)
    return wrapper


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the agent's frames."""
    entries, kept = [], None
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    for entry in reversed(entries):
        if not _is_ours(entry.tb_frame.f_code.co_filename):
            entry.tb_next = kept
            kept = entry
    return kept


def clean_error(error: BaseException | None) -> None:
    """Take our frames out of an exception and of those that led to it."""
    waiting, seen = [error], set()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = without_ours(error.__traceback__)
        waiting += [error.__cause__, error.__context__]
