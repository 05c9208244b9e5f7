"""The program reads its own files changed, where the file system cannot show them so.

Whatever reads a file through Python gets the changed text: imports, `open`, `inspect.getsource`, AutoGraph,
tracebacks. The main script is the exception, for the interpreter itself reads it: such a process begins again
with `run_changed`.
"""

from __future__ import annotations

import builtins
import functools
import io
import sys

from .kept import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

READING = frozenset("rbtU")  # Modes of `open` that only read


class ChangedFiles:
    """Which file to read in place of which; both are absolute paths with links resolved."""

    def __init__(self, changed: Mapping[str, str]) -> None:
        self.changed = dict(changed)
        self.names = frozenset(os.path.basename(path) for path in changed)

    def instead(self, file: object) -> str | None:
        """Return the file to read in place of this one; None when it is as it was."""
        if not isinstance(file, (str, bytes, os.PathLike)):
            return None
        path = os.fsdecode(file)
        if os.path.basename(path) not in self.names and not os.path.islink(path):
            return None  # most files: their folders need no look
        return self.changed.get(os.path.realpath(path))


def install(changed: Mapping[str, str], runner: str) -> None:
    """Read the changed files from now on; where the main script is one of them, begin again with `runner`."""
    files = ChangedFiles(changed)
    if files.instead(sys.argv[0]) is not None:
        options: list[str] = getattr(sys, "orig_argv", sys.argv)[1 : -len(sys.argv)]
        os.execv(sys.executable, [sys.executable, *options, runner, *sys.argv])  # the same program
    _patch_open(files)
    _patch_bytecode(files)


class Opener:
    """The function `open`: no Python function, so that it does not become a method in the body of a class."""

    def __init__(self, files: ChangedFiles, original: Callable[..., Any]) -> None:
        self.files, self.original = files, original
        functools.update_wrapper(self, original)

    def __call__(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as open
        """Open the changed file for reading, the file itself for writing."""
        reads = READING.issuperset(mode)
        other = self.files.instead(file) if reads else None
        return self.original(file if other is None else other, mode, *args, **kwargs)

    def __reduce__(self) -> str:
        """Pickle as the function is: by its name."""
        return "open"


def _patch_open(files: ChangedFiles) -> None:
    """Open changed files in place of the program's own, as text and as code, under all names of the functions."""
    open_, original = Opener(files, io.open), io.open_code

    @functools.wraps(original)
    def open_code(path: str) -> Any:  # noqa: ANN401  # as open_code
        other = files.instead(path)
        return original(path if other is None else other)

    changes: Any = (io, sys.modules.get("_io"))
    for module in changes:
        module.open, module.open_code = open_, open_code
    names: Any = builtins
    names.open = open_
    tokenizer: Any = sys.modules.get("tokenize")
    if tokenizer is not None:
        tokenizer._builtin_open = open_


def _patch_bytecode(files: ChangedFiles) -> None:
    """Compile changed files anew: the bytecode that is stored is that of the original."""
    files_of: Any = sys.modules["_frozen_importlib_external"]
    loader = files_of.SourceFileLoader
    original = loader.path_stats

    @functools.wraps(original)
    def path_stats(self: object, path: str) -> Any:  # noqa: ANN401  # as path_stats
        if files.instead(path) is not None:
            raise OSError("changed for a trial: no bytecode")
        return original(self, path)

    loader.path_stats = path_stats
