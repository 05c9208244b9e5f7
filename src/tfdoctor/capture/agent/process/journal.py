"""The agent's notes: a small state file in a folder of its process, replaced as a whole."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in: no file of the user's hides it
import functools
import sys

from .kept import io, json, os, threads
from .rank import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

    class HasJournal(Protocol):
        """An object whose methods may be guarded."""

        log: Journal

    Owner = TypeVar("Owner", bound=HasJournal)


MOST_ERRORS = 20  # A fault in a hook may repeat every step; the first reports are enough


class Journal:
    """The state of the recording as the agent knows it; tfdoctor folds it into the manifest."""

    def __init__(self, out: str | None = None, processes: str | None = None) -> None:
        self.processes = processes
        self.begin(out)

    def begin(self, out: str | None = None) -> None:
        """Begin with nothing noted yet, in this folder or in a new one below `processes`."""
        self.lock = threads.RLock()
        self.folder = out
        self.pid: int | None = os.getpid()
        self.errors: list[dict[str, str]] = []
        self.lacking: list[dict[str, str]] = []
        self.state: dict[str, object] = {
            "errors": self.errors,
            "missing": self.lacking,
            "pid": self.pid,
            "host": os.uname().nodename,
            "rank": rank(os.environ),
            "versions": {"python": ".".join(map(str, sys.version_info[:3]))},
        }

    @property
    def out(self) -> str:
        """The folder of this process, <host>.<pid>: made when there is something to put there.

        Several hosts may share `processes`, and a process that replaces itself (`os.execv`) keeps its number.
        """
        if self.folder is not None:
            return self.folder
        if self.processes is None:
            raise ValueError("there is no folder for this process")
        name, number = f"{os.uname().nodename}.{os.getpid()}", 0
        while True:
            folder = os.path.join(self.processes, f"{name}.{number}" if number else name)
            try:
                os.mkdir(folder)
            except FileExistsError:
                number += 1
            else:
                self.folder = folder
                return folder

    def ours(self) -> bool:
        """Say whether this is the process that was started, and not a fork of it."""
        return os.getpid() == self.pid

    def fault(self, where: str, error: Exception) -> None:
        """Note a fault of ours; raise what a handler of a signal has raised meanwhile: that is the user's."""
        if _is_of_handler(error):
            raise error
        if len(self.errors) < MOST_ERRORS:
            from .masking import cleaned_begin  # same as in `write`

            text = cleaned_begin(f"{type(error).__name__}: {error}", 500)
            self.errors.append({"where": where, "error": text})

    def missing(self, what: str, why: str) -> None:
        """Note what this recording lacks, and what the user can do about it."""
        self.lacking.append({"what": what, "why": why})

    def forgive(self, what: str) -> None:
        """Something is there now: remove the notes of its absence."""
        self.lacking[:] = [entry for entry in self.lacking if entry["what"] != what]

    def write(self) -> None:
        """Replace the state file."""
        if not self.ours():
            return
        with self.lock:
            try:
                if "argv" not in self.state:
                    from .masking import masked  # takes 10 ms of CPU to import, few processes need it

                    words = getattr(sys, "orig_argv", None) or getattr(sys, "argv", [])
                    self.state["argv"] = masked(list(words))
                replace(os.path.join(self.out, "agent.json"), json.dumps(self.state).encode())
            except OSError as error:  # the folder is gone or full: a later write may note it
                self.fault("journal", error)


def replace(path: str, content: bytes) -> None:
    """Write a file in place of what it was, so that a run that is killed leaves one of the two.

    Raises:
        OSError: it cannot be written.
    """
    with io.open(f"{path}.tmp", "wb") as file:
        file.write(content)
    os.replace(f"{path}.tmp", path)


def _is_of_handler(error: Exception) -> bool:
    """Say whether a handler of a signal raised it, as a time limit does: one may run between any lines of ours."""
    handlers = (_signal.getsignal(number) for number in range(1, _signal.NSIG))
    codes = {_code(handler) for handler in handlers if callable(handler)}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def _code(handler: object) -> object:
    function = getattr(handler, "func", handler)  # of functools.partial
    function = getattr(function, "__func__", function)  # of a method
    if not hasattr(function, "__code__"):  # an object that is called
        function = type(function).__call__
    return getattr(function, "__code__", None)


def quietly(where: str, log: Journal) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Make a function note its faults and return None instead of raising."""
    return lambda function: _careful(function, where, lambda _: log)


def guarded(
    where: str,
) -> Callable[[Callable[Concatenate[Owner, P], R]], Callable[Concatenate[Owner, P], R | None]]:
    """Make a method note its faults in its object's journal and return None instead of raising."""
    return lambda method: _careful(method, where, lambda given: given[0].log)


def _careful(function: Callable[P, R], where: str, log_of: Callable[[Any], Journal]) -> Callable[P, R | None]:
    @functools.wraps(function)
    def careful(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # the user's run goes on, whatever it was
            log_of(args).fault(where, error)
            return None

    return careful
