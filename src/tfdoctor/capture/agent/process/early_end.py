"""The end of a run that tfdoctor ends early: without the interpreter's own end, which may wait for ever.

`SystemExit` leaves an iterator of tf.data alive until Python destroys its modules. Where Python functions feed that
iterator (`from_generator`, Keras' `PyDataset`), its destruction waits for a thread that waits for Python's lock,
which no thread gets any more by then.
"""

from __future__ import annotations

import gc
import sys

from .kept import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .journal import Journal

_stopped: list[Journal] = []  # The journal of the process whose run tfdoctor ends


def stops(log: Journal) -> None:
    """This process is about to get its `SystemExit`."""
    _stopped.append(log)


def leave(exit_now: Callable[[int], object]) -> None:
    """Leave where the run was ended early, after all other handlers of the end.

    What the script does once it has caught `SystemExit` may have failed.
    """
    if _stopped and _stopped[-1].ours() and _feeds():
        _flush()
        exit_now(0 if getattr(sys, "last_type", None) is None else 1)


def _feeds() -> bool:
    """Say whether TensorFlow may still call Python functions: every other run ends as the interpreter ends it."""
    operations = sys.modules.get("tensorflow.python.ops.script_ops")
    known = getattr(operations, "_py_funcs", None)
    return operations is not None and (known is None or known.size() > 0)


def _flush() -> None:
    for thing in gc.get_objects():
        if isinstance(thing, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            try:
                thing.flush()
            except (OSError, ValueError):  # closed, detached, or nobody reads it any more
                continue
