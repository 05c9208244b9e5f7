"""The functions that the agent uses, as they were before the script began.

A script may replace them while it runs: tests put doubles in place of `time.sleep` and `open`, stop the clocks in
all modules, or put greenlets in place of threads. It would see the agent's calls, and the agent false times.
No search through the modules, or through what their dictionaries hold, finds these copies.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _thread as threads
    import io
    import json
    import os
    import time
    from typing import Any

__all__ = ["io", "json", "main_thread", "os", "threads", "time"]

AGENT: Any = sys.modules[__name__.rpartition(".")[0].rpartition(".")[0]]

SECOND = 1_000_000_000

TAI, COARSE = 11, 5
"""Clocks of Linux: one that is whole seconds apart from the time of day, and one that is behind it by some ms."""


def _copy(name: str) -> Any:  # noqa: ANN401  # stands for a module
    """Return an object that holds what a module did when this process began, or does now if that is not known."""
    held = getattr(AGENT, "TAKEN", {}).get(name) or vars(importlib.import_module(name))
    names = [key for key in held if not key.startswith("__")]
    copy: Any = type(name, (), {"__slots__": names})()
    for key in names:
        setattr(copy, key, held[key])
    return copy


def _unix_ns() -> int:
    """Return the time of day, also where a library has changed within Python what the clock of this name says."""
    exact = time.clock_gettime_ns(TAI)
    return exact - round((exact - time.clock_gettime_ns(COARSE)) / SECOND) * SECOND


def _create(path: str, flags: int) -> int:
    """Open a file of ours, with the permissions of its folder: a script may have a `umask` that allows nothing."""
    number = os.open(path, flags, 0o666)
    try:
        os.fchmod(number, os.stat(os.path.dirname(path)).st_mode & 0o666)
    except OSError:  # a file system without permissions, or another user's file
        return number
    return number


def _opens(plain: Any) -> Any:  # noqa: ANN401  # functions as `open` is
    def opened(path: str, mode: str = "r", **options: Any) -> Any:  # noqa: ANN401  # same
        if mode[0] in "wa":
            options["opener"] = _create
        return plain(path, mode, **options)

    return opened


if not TYPE_CHECKING:
    io, json, os, threads, time = map(_copy, ("io", "json", "os", "_thread", "time"))
    io.open = _opens(io.open)
    try:
        if sys.platform == "linux" and abs(_unix_ns() - time.time_ns()) < SECOND:
            time.time_ns, time.time = _unix_ns, lambda: _unix_ns() / SECOND
    except OSError:  # a sandbox without these clocks
        TAI = None

_main: list[int] = []


def main_thread() -> int:
    """Return the number of the main thread, which `threading` may no longer know."""
    return _main[-1]


def _forked() -> None:
    _main[:] = [threads.get_ident()]


_main.append(
    getattr(AGENT, "MAIN_THREAD", None) or importlib.import_module("threading").main_thread().ident
)
os.register_at_fork(after_in_child=_forked)
