"""Frames of ours on the user's stack: hidden wherever TensorFlow and Keras hide their own.

A wrapper is on the stack while the user's code runs below it, so tracebacks and the messages of
failed operations would name it. TensorFlow and Keras leave out what lies in `tensorflow/python`.
"""

from __future__ import annotations

import importlib.machinery
import sys

from .kept import os
from .stack import HERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

MARK = "(tfdoctor)"


def hide(wrapper: F) -> F:
    """Give a function's frames a file name that says whose they are and is left out: in TensorFlow's folder."""
    # Keras may be imported before TensorFlow, or without it.
    known = getattr(sys.modules.get("tensorflow"), "__spec__", None)
    spec = known or importlib.machinery.PathFinder.find_spec("tensorflow")
    origin = spec.origin if spec is not None else None
    folder = os.path.dirname(os.path.abspath(origin)) if origin else "tensorflow"
    function: Any = wrapper  # a plain function, whatever its declared type
    code = function.__code__
    function.__code__ = code.replace(co_filename=os.path.join(folder, "python", MARK))
    return wrapper


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the agent's frames."""
    entries, kept = [], None
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    for entry in reversed(entries):
        name = entry.tb_frame.f_code.co_filename
        if not name.startswith(HERE + os.sep) and not name.endswith(MARK):
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
