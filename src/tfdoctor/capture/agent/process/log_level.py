"""Keeps the messages of TensorFlow's profiler out of the script's output while a trace starts and ends.

The profiler logs five lines at the level INFO, the first one in the middle of a progress bar. TensorFlow logs by
absl, whose least level belongs to the process: it is WARNING meanwhile, and the script's own again afterwards.
Warnings and errors of all threads stay. absl's functions are C++, and their names contain absl's version: where
none of the known names exists, or TensorFlow logs by itself (up to 2.18), the messages stay too.
"""

from __future__ import annotations

import contextlib
import sys

from .kept import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WARNING = 1  # absl's LogSeverity; INFO is 0
# Releases of absl with long-term support, the newest first.
VERSIONS = ("20260107", "20250814", "20250512", "20250127", "20240722", "20240116")

LIBRARY = "libtensorflow_framework.so.2"


@contextlib.contextmanager
def warnings_only() -> Iterator[None]:
    """Leave out what is less than a warning meanwhile; without absl's functions it does nothing."""
    found = _functions()
    before = found[0]() if found is not None else WARNING
    if found is None or before >= WARNING:
        yield
        return
    get, put = found
    put(WARNING)
    try:
        yield
    finally:
        if get() == WARNING:  # the script has chosen no other level meanwhile
            put(before)


def _functions() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    """Return absl's functions that read and set the level; None where they are not found."""
    import ctypes

    paths = getattr(sys.modules.get("tensorflow"), "__path__", None) or ()
    for folder in paths:
        try:  # only a library that is loaded already
            library = ctypes.CDLL(os.path.join(folder, LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        for version in VERSIONS:
            space = f"_ZN4absl12lts_{version}"
            get = getattr(library, f"{space}11MinLogLevelEv", None)
            put = getattr(library, f"{space}14SetMinLogLevelENS0_18LogSeverityAtLeastE", None)
            if get is not None and put is not None:
                get.restype, put.restype, put.argtypes = ctypes.c_int, None, [ctypes.c_int]
                return get, put
    return None
