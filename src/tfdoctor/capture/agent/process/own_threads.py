"""Threads of the agent: none that the script can see, in `threading` or by a signal that is delivered to it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built in: no file of the user's hides it

from .kept import os, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def start(run: Callable[..., object], *args: object) -> None:
    """Start a thread that blocks all signals: the script's threads may `sigwait` for them."""
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    try:  # the thread begins as this one is
        threads.start_new_thread(run, args)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


class OwnThread:
    """A thread, which ends with its function or with the interpreter."""

    def __init__(self, run: Callable[..., object], *args: object) -> None:
        self.pid = os.getpid()
        self.over = False
        start(self._run, run, args)

    def _run(self, run: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            run(*args)
        finally:
            self.over = True

    def is_alive(self) -> bool:
        """Say whether it runs; a fork does not have it."""
        return not self.over and self.pid == os.getpid()
