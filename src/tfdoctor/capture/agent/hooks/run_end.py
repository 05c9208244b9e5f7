"""The end of the run, however it comes: close the window and write what there is."""

from __future__ import annotations

import atexit
import sys

from ..process.frames import STRIPS, clean_error, without_ours
from ..process.journal import guarded
from ..run.whole import before_hard_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ..installed import Installed


class RunEnd:
    """Finishes the recording of this process."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.log = installed, installed.log

    @guarded("end of the run")
    def finish(self) -> None:
        """Close the window with the reason of the end."""
        if not self.log.ours():
            return
        raised: type | None = getattr(sys, "last_type", None)
        reason = "end-of-run"  # of the interpreter, as far as it tells
        if raised is not None:
            reason = "interrupt" if issubclass(raised, KeyboardInterrupt) else "exception"
        with self.installed.window.own_work():
            self.installed.window.close(reason)
            self.installed.program.end()
            self.log.state["finished"] = True
            self.installed.window.save()
        self.installed.window.rest()  # nobody would stop a profiler that starts from here on


def install(installed: Installed) -> None:
    """Watch the ways a Python process ends."""
    finish = RunEnd(installed).finish
    atexit.register(finish)
    # Handlers run last in, first out: this one must run before those of TensorFlow.
    installed.window.before_open.append(lambda: atexit.register(finish))
    _before_hard_exit(installed, finish)
    if not STRIPS:
        _hide_our_frames()


def _before_hard_exit(installed: Installed, finish: Callable[[], object]) -> None:
    """Multiprocessing's forks end by `os._exit`."""

    def end() -> None:
        if installed.log.ours() and installed.window.any_step():
            finish()
        installed.recorder.end()

    before_hard_exit(end)


def _hide_our_frames() -> None:
    """Print tracebacks as they would be without us."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        clean_error(error)
        previous(kind, error, without_ours(trace))

    sys.excepthook = excepthook
