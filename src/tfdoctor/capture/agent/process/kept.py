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
    import gc
    import io
    import json
    import os
    import time
    from typing import Any

__all__ = ["gc", "io", "json", "main_thread", "os", "threads", "time"]

AGENT: Any = sys.modules[__name__.rpartition(".")[0].rpartition(".")[0]]

_Function, _PATH = type(lambda: None), importlib.import_module("os.path").__name__

SECOND = 1_000_000_000

# Clocks of Linux: one that is whole seconds apart from the time of day, and one that is behind it by some ms.
TAI, COARSE = 11, 5


def _copy(name: str, **known: object) -> Any:  # noqa: ANN401  # stands for a module
    """Return an object that holds what a module did when this process began, or does now if that is not known.

    Its functions that are written in Python call each other, and what else is ``known`` to them, not the module's.
    """
    held = getattr(AGENT, "TAKEN", {}).get(name) or vars(importlib.import_module(name))
    own = {**held, **known}
    for key, value in own.items():
        if type(value) is _Function and value.__module__ in (name, "genericpath"):
            own[key] = _Function(value.__code__, own, key, value.__defaults__, value.__closure__)
            own[key].__kwdefaults__ = value.__kwdefaults__
    names = [key for key in own if not key.startswith("__")]
    copy: Any = type(name, (), {"__slots__": names})()
    for key in names:
        setattr(copy, key, own[key])
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
    gc, io, json, threads, time = map(_copy, ("gc", "io", "json", "_thread", "time"))
    os = _copy("os", path=_copy(_PATH, os=_copy("os")))
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


_main.append(getattr(AGENT, "MAIN_THREAD", None) or importlib.import_module("threading").main_thread().ident)
os.register_at_fork(after_in_child=_forked)
