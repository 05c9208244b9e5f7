"""A plain stopwatch for the scripts beside it: it does nothing unless STEP_TIMES names a file.

Each line it writes at the script's end is a moment, in ns since 1970, and how many steps began then.
"""

import atexit
import os
import time
from pathlib import Path

TICKS = []


def tick(steps=1):
    """Note that so many steps begin now; 0 says that those before are over."""
    TICKS.append((time.perf_counter_ns(), steps))


def _write(path, offset):
    lines = [f"{moment + offset} {steps}\n" for moment, steps in TICKS]
    Path(path).write_text("".join(lines), encoding="utf-8")


if "STEP_TIMES" in os.environ:
    atexit.register(_write, os.environ["STEP_TIMES"], time.time_ns() - time.perf_counter_ns())
