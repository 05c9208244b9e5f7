"""What happens to the window while the user's own profiler is at work: ours gives way to it."""

from __future__ import annotations

import functools

from ..process.frames import hide
from ..process.journal import guarded
from ..window.captures import ProfilerApi
from ..window.window import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..installed import Installed
    from ..process.declared import Foreign, ProfilerModule
    from ..process.imports import Hooks
    from ..window.window import TraceWindow

PROFILER = "tensorflow.python.profiler.profiler_v2"
CLIENT = "tensorflow.python.profiler.profiler_client"

ENDED_EARLY = (
    "the trace ended early, for the script profiled by itself (a profiler of its own, or RunOptions.FULL_TRACE): "
    "for a longer one, run it without that"
)


class Lending:
    """Gives way to the user's profiler, and marks the steps in its trace."""

    def __init__(self, window: TraceWindow) -> None:
        self.window, self.log = window, window.log

    @guarded("user's profiler")
    def give_way(self) -> None:
        """The user starts a profiler: ours stops."""
        if self.window.state is OPEN:
            self.window.interrupted = True
            self.log.missing("window", ENDED_EARLY)
        self.window.close("user-profiler")

    def alone(self, call: Callable[..., object]) -> Callable[..., object]:
        """Return a function that profiles as it runs, with no profiler of ours beside it."""
        window = self.window

        @functools.wraps(call)
        def users_call(*args: object, **kwargs: object) -> object:
            self.give_way()
            window.lent += 1  # of the steps in it, none opens a window
            try:
                return call(*args, **kwargs)
            finally:
                window.lent -= 1

        return hide(users_call)

    @guarded("user's profiler")
    def lent(self, logdir: str | os.PathLike[str]) -> None:
        """The user's profiler is running: mark its steps, and use its trace."""
        window = self.window
        with window.lock:
            waiting = window.wanted and window.state is WAITING
            if waiting and window.profiler is not None and logdir:
                capture = window.new_capture(window.profiler)
                capture.borrow(logdir)
                window.opened(capture)

    @guarded("user's profiler")
    def ending(self) -> None:
        """The user's profiler is about to stop: nothing is marked after this."""
        capture = self.window.capture
        if capture is not None and capture.borrowed:
            capture.finish()
        else:
            self.window.close("user-profiler")  # they have none, and shall hear that

    @guarded("user's profiler")
    def ended(self) -> None:
        """The user's profiler has written its trace."""
        if self.window.borrowed():
            self.window.close("user-profiler")


def hooks(installed: Installed) -> Hooks:
    """Learn of the profiler when TensorFlow brings it, and yield it when the user wants it."""
    window = installed.window

    def found(module: ProfilerModule) -> None:
        window.profiler = ProfilerApi(module)
        _patch(module, window)
        if window.plan.get("seconds"):
            installed.watch.begin()

    def found_client(module: Foreign) -> None:
        module.trace = Lending(window).alone(module.trace)

    return {PROFILER: [found], CLIENT: [found_client]}


def _patch(module: ProfilerModule, window: TraceWindow) -> None:
    """Notice the user's calls, before and after."""
    start, stop, lending = module.start, module.stop, Lending(window)
    session = module._pywrap_profiler.ProfilerSession
    session.start = lending.alone(session.start)  # what all ways to one within Python come to

    @functools.wraps(start)
    def users_start(logdir: str | os.PathLike[str], *args: object, **kwargs: object) -> object:
        lending.give_way()
        result = start(logdir, *args, **kwargs)
        lending.lent(logdir)
        return result

    @functools.wraps(stop)
    def users_stop(*args: object, **kwargs: object) -> object:
        lending.ending()
        try:
            return stop(*args, **kwargs)
        finally:
            lending.ended()

    module.start, module.stop = hide(users_start), hide(users_stop)
