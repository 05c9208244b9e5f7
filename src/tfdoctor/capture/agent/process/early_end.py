"""The end of a run that tfdoctor ends early: without the interpreter's own end, which may wait for ever.

`SystemExit` leaves an iterator of tf.data alive until Python destroys its modules. Where Python functions feed that
iterator (`from_generator`, Keras' `PyDataset`), its destruction waits for a thread that waits for Python's lock, which
no thread gets any more by then.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .journal import Journal


def watch(log: Journal) -> None:
    """Leave after all other handlers of the end: to be called before the script can register one."""
    atexit.register(_leave, log, os._exit)


def _leave(log: Journal, leave: Callable[[int], object]) -> None:
    """Leave where the run was ended early; what the script does after a caught `SystemExit` may have failed."""
    if log.ours() and log.state.get("stopped_after"):
        _flush()
        leave(0 if getattr(sys, "last_type", None) is None else 1)


def _flush() -> None:
    """Write what open files still hold, as their destruction would."""
    for thing in gc.get_objects():
        if isinstance(thing, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            try:
                thing.flush()
            except (OSError, ValueError):  # closed, detached, or nobody reads it any more
                continue
