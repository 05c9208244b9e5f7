"""A plain stopwatch for the scripts beside it: it does nothing unless STEP_TIMES names a file.

Each line it writes at the script's end is a moment, in ns since 1970, and how many steps began then.
It needs Python 3.9 and the standard library only, as it runs where the scripts run.
"""

from __future__ import annotations  # Python 3.9 knows no `str | Path` at run time

import atexit
import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS: list[tuple[int, int]] = []  # (ns of the performance counter, steps)


def tick(steps: int = 1) -> None:
    """Note that so many steps begin now; 0 says that those before are over."""
    TICKS.append((time.perf_counter_ns(), steps))


def _write(path: str, offset: int) -> None:
    lines = [f"{moment + offset} {steps}\n" for moment, steps in TICKS]
    Path(path).write_text("".join(lines), encoding="utf-8")


if "STEP_TIMES" in os.environ:
    atexit.register(_write, os.environ["STEP_TIMES"], time.time_ns() - time.perf_counter_ns())


@dataclass(frozen=True)
class Span:
    """From one tick to the next, in ns since 1970, and the steps that ran in it."""

    start_ns: int
    steps: int
    end_ns: int

    @property
    def ms(self) -> float:
        """Milliseconds per step."""
        return (self.end_ns - self.start_ns) / 1e6 / self.steps


def read(path: str | Path) -> tuple[list[Span], int]:
    """Return what a script wrote: the spans with steps in them, and how many steps began in all."""
    text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    pairs = [line.split() for line in text.splitlines()]
    ticks = [(int(moment), int(steps)) for moment, steps in pairs]
    following = [moment for moment, _ in ticks[1:]]
    pieces = [(*ticks[i], end) for i, end in enumerate(following)]
    spans = [Span(start, steps, end) for start, steps, end in pieces if steps]
    return spans, sum(steps for _, steps in ticks)
