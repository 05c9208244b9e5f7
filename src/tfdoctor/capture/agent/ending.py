"""The end of the run, however it comes: close the window and write what there is."""

import atexit
import functools
import os
import sys

from .frames import without_ours
from .journal import quietly


def install(window):
    """Watch the ways a Python process ends."""
    finish = quietly("end of the run", window.log)(lambda: _finish(window))
    atexit.register(finish)
    # Handlers run last in, first out: this one must run before those of TensorFlow.
    window.before_open.append(lambda: atexit.register(finish))
    _before_hard_exit(window, finish)
    _hide_our_frames()


def _finish(window):
    """Close the window with the reason of the end."""
    if not window.log.ours():
        return
    window.close(_reason())
    window.registry.write()
    window.log.state["finished"] = True
    window.save()
    window._rest()  # nobody would stop a profiler that starts now, before TensorFlow is gone


def _reason():
    """Return why the interpreter is ending, as far as it tells."""
    kind = getattr(sys, "last_type", None)
    if kind is None:
        return "end-of-run"
    return "interrupt" if issubclass(kind, KeyboardInterrupt) else "exception"


def _before_hard_exit(window, finish):
    """`os._exit` runs no handlers, and multiprocessing's forks end by it: what was seen would be lost."""
    leave = os._exit

    @functools.wraps(leave)
    def _exit(status):
        if window.log.ours() and any(source.seen for source in window.sources.values()):
            finish()
        leave(status)

    os._exit = _exit


def _hide_our_frames():
    """Print tracebacks as they would be without us."""
    previous = sys.excepthook

    def excepthook(kind, error, trace):
        _clean(error, set())
        previous(kind, error, without_ours(trace))

    sys.excepthook = excepthook


def _clean(error, seen):
    """Take our frames out of an exception and of those that led to it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = without_ours(error.__traceback__)
    _clean(error.__cause__, seen)
    _clean(error.__context__, seen)
