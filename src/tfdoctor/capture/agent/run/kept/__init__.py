"""What a run keeps: statements of the loops around training that add to a container, for the log."""

from __future__ import annotations

import linecache

from ...process.kept import os, time
from ...process.stack import line_number, user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from .frames import At
    from .source import UserSource

# Calls that train whose loops are read; more have the same loops, or are made by a library for each model.
MOST_CALLS = 50
MOST_TOLD = 20  # Statements that are told of a run
# Bytes of a file that is read: some 1,700 lines, which take 35 ms once; a script of 100 lines takes 2 ms.
MOST_BYTES = 60_000
# CPU time after which nothing more is read. A collection of all of Python's garbage may fall into it, which takes
# 0.15 s with TensorFlow's objects (measured).
MOST_S = 0.3
# Functions that are expressions: they hold no statements.
WITHIN = frozenset(["<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"])


class NotedCall:
    """A call that trains: the user's frames around it by file, line and function, the innermost first."""

    def __init__(self, frame: FrameType | None, *, fits: bool) -> None:
        self.fits = fits
        self.direct = frame is not None and user_file(frame.f_code.co_filename) is not None
        self.frames: list[tuple[CodeType, str, int]] = []
        while frame is not None:
            path = user_file(frame.f_code.co_filename)
            if path is not None and frame.f_code.co_name not in WITHIN:
                self.frames.append((frame.f_code, path, line_number(frame)))
            frame = frame.f_back


class KeptLines:
    """Notes calls that train, each once, and parses their files, on the thread that trains; another one reads them.

    AutoGraph parses on the thread that trains, and until Python 3.11.8 two threads that parse at once can make
    either fail with a SystemError (python/cpython#106905).
    """

    def __init__(self) -> None:
        self.known: set[tuple[int, int]] = set()  # the id of a code and an instruction
        self.calls: list[NotedCall] = []  # not read yet; they keep the codes whose ids are known
        self.read: list[NotedCall] = []
        self.sources: dict[str, UserSource | None] = {}
        self.told: set[object] = set()  # their lines
        self.began, self.spent = time.time(), 0.0

    def add(self, frame: FrameType | None, *, fits: bool = False) -> None:
        """Note a call that the frame makes, unless its line is known."""
        users = frame
        while users is not None and user_file(users.f_code.co_filename) is None:
            users = users.f_back
        if users is None or len(self.known) >= MOST_CALLS:
            return
        key = id(users.f_code), users.f_lasti
        if key not in self.known:
            self.known.add(key)
            call, began = NotedCall(frame, fits=fits), time.thread_time()
            for code, path, _ in call.frames:
                if path not in self.sources and self.spent < MOST_S:
                    self.sources[path] = self._source(code.co_filename, path)
            self.calls.append(call)
            self.spent += time.thread_time() - began

    def take(self) -> list[dict[str, object]]:
        """Read the source of the calls that are new, and return the lines for the log."""
        told: list[dict[str, object]] = []
        while self.calls and self.spent < MOST_S:
            call = self.calls.pop()
            self.read.append(call)
            began = time.thread_time()
            told += self._statements(call)
            self.spent += time.thread_time() - began
        return told

    def _statements(self, call: NotedCall) -> Iterator[dict[str, object]]:
        from .statements import keeping  # with `ast`, which takes some ms to import

        frames = [at for frame in call.frames for at in self._at(*frame)]
        if len(frames) != len(call.frames):
            return
        for found in keeping(frames, fits=call.fits, direct=call.direct):
            if len(self.told) < MOST_TOLD and found["at"] not in self.told:
                self.told.add(found["at"])
                yield {"kind": "kept", **found}

    def _at(self, code: CodeType, path: str, line: int) -> Iterator[At]:
        """Yield the place of a frame in its source, where that is known."""
        from .frames import At

        source = self.sources.get(path)
        if source is not None:
            at = At(source, line)
            if code.co_name == getattr(at.scope, "name", "<module>"):  # else it is another source
                yield at

    def _source(self, name: str, path: str) -> UserSource | None:
        """Return the source of a file; None where it cannot be read, is large, or has changed since."""
        import ast

        from .source import UserSource

        if os.path.exists(path) and os.path.getmtime(path) > self.began:
            return None
        text = "".join(linecache.getlines(name) or linecache.getlines(path))
        if not text or len(text) > MOST_BYTES:
            return None
        try:
            return UserSource(ast.parse(text), path)
        except (SyntaxError, ValueError, RecursionError):
            return None
