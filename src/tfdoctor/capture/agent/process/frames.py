"""Frames of ours on the user's stack: hidden wherever TensorFlow and Keras hide their own.

A wrapper is on the stack while the user's code runs below it, so tracebacks and the messages of
failed operations would name it. TensorFlow and Keras leave out what lies in `tensorflow/python`.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

from .stack import HERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

MARK = "(tfdoctor)"


def hide(wrapper: F) -> F:
    """Give a function's frames a file name that says whose they are and is left out."""
    name = os.path.join(_tensorflow(), "python", MARK)
    function: Any = wrapper  # a plain function, whatever its declared type
    function.__code__ = function.__code__.replace(co_filename=name)
    return wrapper


def _tensorflow() -> str:
    """Return the folder of TensorFlow; Keras may be imported before it, or without it."""
    module = sys.modules.get("tensorflow")
    spec = getattr(module, "__spec__", None) or importlib.machinery.PathFinder.find_spec(
        "tensorflow"
    )
    origin = spec.origin if spec is not None else None
    return os.path.dirname(os.path.abspath(origin)) if origin else "tensorflow"


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
