"""Which line is the user's: the innermost frame outside installed packages and the agent."""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from .declared import Traceback

    Line = tuple[str, int]  # a path, and the line's number
    Way = tuple[tuple[str, int], ...]  # paths and instructions, the innermost first

HERE = os.path.dirname(os.path.abspath(__file__))
START: str = getattr(sys.modules[__name__.rpartition(".")[0]], "START", None) or os.getcwd()
"""Scripts change their working directory; relative file names were made before that."""

FOREIGN = re.compile(
    r"[\\/](site-packages|dist-packages|lib[\\/]python\d+(\.\d+)*)[\\/]|^<|__autograph_generated_file"
)
"""Installed packages, the standard library, code without a file, AutoGraph's translations."""

_known: dict[str, str | None] = {}
"""The user's path of each file name met so far."""


def name_files(names: Mapping[str, str | None]) -> None:
    """Set the user's path of some file names: a notebook's cells; None is not the user's."""
    _known.update(names)


def user_file(name: str) -> str | None:
    """Return the absolute path of a user's source file, or None when the file is not theirs."""
    if name not in _known:
        path = os.path.normpath(os.path.join(START, name))
        foreign = FOREIGN.search(name) or path.startswith(HERE + os.sep)
        _known[name] = None if foreign else path
    return _known[name]


def user_line(frame: FrameType | None) -> Line | None:
    """Return the path and line of the innermost user frame at or above this one, or None."""
    while frame is not None:
        path = user_file(frame.f_code.co_filename)
        if path is not None:
            return path, frame.f_lineno
        frame = frame.f_back
    return None


def here() -> Line | None:
    """Return the user's line that led to the caller."""
    return user_line(sys._getframe(1))


def called_here() -> str:
    """Return the name of the function that the user's line calls, on the way to the caller; "" if none."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        name, frame = frame.f_code.co_name, frame.f_back
    return name if frame is not None else ""


def way_here() -> Way:
    """Return all places of the user's on the stack: two calls of one helper differ in them.

    Places are instructions, for `train, valid = make(9), make(1)` is a single line.
    """
    return way_of(sys._getframe(1))


def way_of(frame: FrameType | None) -> Way:
    """Return all places of the user's at or above a frame, which may be another thread's."""
    places = []
    while frame is not None:
        path = user_file(frame.f_code.co_filename)
        if path is not None:
            places.append((path, frame.f_lasti))
        frame = frame.f_back
    return tuple(places)


def traced_line(trace: Traceback | None) -> Line | None:
    """Return the path and line of the innermost user frame of a graph operation's traceback."""
    if trace is None:
        return None
    # Six times faster where TensorFlow leaves out its own frames itself.
    frames = trace.get_user_frames() if hasattr(trace, "get_user_frames") else list(trace)
    for frame in reversed(frames):
        path = user_file(frame.filename)
        if path is not None:
            return path, frame.lineno
    return None
