"""What the function that trains is given, noted at two calls of the window."""

from __future__ import annotations

import sys

from .journal import guarded
from .stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, FrameType
    from typing import TypedDict

    from .declared import Foreign
    from .journal import Journal
    from .stack import Line

    class Argument(TypedDict, total=False):
        """An array that a call is given."""

        kind: str
        dtype: str
        shape: list[int]
        anew: bool  # whether the second call is given another object

    class Call(TypedDict):
        """The first call of the window."""

        at: Line
        arguments: list[Argument]


class CallArguments:
    """The arguments of the tf.function that trains."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.wanted = False
        self._forget()

    def _forget(self) -> None:
        self.code: CodeType | None = None  # of the user's function that calls
        self.call: Call | None = None
        self.first: Sequence[object] | None = None  # the arrays, until the second call

    def begin(self) -> None:
        """A window opens: the next two calls are of interest."""
        self._forget()
        self.wanted = True

    @guarded("arguments")
    def note(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Note what a call is given, and at the second call whether those are new objects."""
        given = [value for value in (*args, *kwargs.values()) if _is_array(value)]
        if self.first is None:
            self.first = given
            self._describe(given, _user_frame(sys._getframe(1)))
            return
        self.wanted = False
        if self.call is not None:
            pairs = zip(self.first, given)  # noqa: B905  # Python 3.9 knows no `strict`
            for argument, (before, now) in zip(self.call["arguments"], pairs):  # noqa: B905
                argument["anew"] = now is not before
        self.first = None

    def _describe(self, given: Sequence[object], frame: FrameType | None) -> None:
        path = user_file(frame.f_code.co_filename) if frame is not None else None
        if frame is not None and path is not None:
            self.code = frame.f_code
            self.call = {"at": (path, frame.f_lineno), "arguments": list(map(_described, given))}


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype") and len(getattr(value, "shape", ())) > 0


def _described(value: Foreign) -> Argument:
    kind = "numpy" if type(value).__module__ == "numpy" else "tensor"
    return {"kind": kind, "dtype": str(value.dtype), "shape": [int(n) for n in value.shape]}


def _user_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return frame
