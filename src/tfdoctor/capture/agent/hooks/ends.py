"""The end of the run, however it comes, and forks of the process: one made in time records for itself."""

from __future__ import annotations

import atexit
import sys

from ..process.frames import STRIPS, clean_error, without_ours
from ..process.journal import quietly
from ..process.kept import os
from ..process.tensorflow_api import in_use
from ..run.whole import before_hard_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ..installed import Installed


def watch(installed: Installed) -> None:
    """Watch the ways a Python process ends: close the window then, and write what there is."""
    window, log = installed.window, installed.log

    finishing = quietly("end of the run", log)(lambda: finish(installed))

    def hard_exit() -> None:  # multiprocessing's forks end by `os._exit`
        if log.ours() and window.any_step():
            finishing()
        installed.recorder.end()

    atexit.register(finishing)
    # Handlers run last in, first out: this one must run before those of TensorFlow.
    window.before_open.append(lambda: atexit.register(finishing))
    before_hard_exit(hard_exit)
    if not STRIPS:
        _hide_our_frames()


def finish(installed: Installed) -> None:
    """Close the window with the reason of the end."""
    window, log = installed.window, installed.log
    if not log.ours():
        return
    raised: type | None = getattr(sys, "last_type", None)
    reason = "end-of-run"  # of the interpreter, as far as it tells
    if raised is not None:
        reason = "interrupt" if issubclass(raised, KeyboardInterrupt) else "exception"
    with window.own_work():
        window.close(reason)
        installed.program.end()
        log.state["finished"] = True
        window.save()
    window.rest()  # nobody would stop a profiler that starts from here on


def _hide_our_frames() -> None:
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        clean_error(error)
        previous(kind, error, without_ours(trace))

    sys.excepthook = excepthook


def watch_forks(installed: Installed) -> None:
    """Begin a recording of its own in each fork; once TensorFlow is in use, a fork of it can train nothing.

    The journal's process number stays the parent's then, which silences all hooks; so it does in
    the forks of such a fork.
    """
    forking: list[int] = []  # the process that forks, which may have ended when its fork asks

    @quietly("fork", installed.log)
    def begun() -> None:
        if installed.log.pid in forking and not in_use():
            installed.after_fork()

    os.register_at_fork(before=lambda: forking.__setitem__(slice(None), [os.getpid()]))

    os.register_at_fork(after_in_child=begun)
