"""Shows on a terminal how many of many things are done, and nowhere else."""

import time
from collections.abc import Callable
from typing import Self, TextIO

from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import Drawn

UPDATE_S = 0.2

SETTLED = 10  # Things that must be done before the time that is left can be estimated


class Counter:
    """A line that counts, removed at the end of the `with` block."""

    def __init__(self, total: int, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.stream, self.clock = total, stream, clock
        self.done = self.failed = 0
        self.shown = total > 0 and stream.isatty()
        self.began = clock()
        self.updated = -UPDATE_S

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._write("\r\x1b[K")

    def add(self, *, failed: bool) -> None:
        """Count one more."""
        self.done += 1
        self.failed += failed
        if self.clock() - self.updated >= UPDATE_S:
            self._show()

    @property
    def text(self) -> str:
        """How far it is: ``312 of 1,000 recordings, three failed, about four minutes left``."""
        parts = [f"{self.done:,} of {self.total:,} recordings"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        if self.done >= SETTLED:
            left_s = (self.clock() - self.began) / self.done * (self.total - self.done)
            parts.append(f"about {_time(left_s)} left")
        return ", ".join(parts)

    def _show(self) -> None:
        self.updated = self.clock()
        self._write(f"\r\x1b[Ktfdoctor: {self.text}")

    def _write(self, text: str) -> None:
        if self.shown:
            self.stream.write(Drawn(text))
            self.stream.flush()


def _time(seconds: float) -> str:
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return counted(round(seconds), "second")
    minutes = round(seconds / 60)
    return counted(minutes, "minute") if minutes < 90 else f"{seconds / 3600:.1f} hours"  # noqa: PLR2004 - same
