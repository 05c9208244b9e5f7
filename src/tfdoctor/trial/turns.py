"""Runs that take turns: one computes while the others are stopped.

Runs one after another differ by what other programs of the host do meanwhile. These meet all runs alike that take
turns, but for what changes within a few seconds.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
import psutil

from tfdoctor.trial.times import MS_PER_S, Floats

# A turn. On a shared host, two runs of 8 s differed by 6 % where one came after the other (standard deviation), by
# 1.7 % in turns of 2 s, and by 1.2 % in turns of 0.5 s: medians of a fixed computation on two cores, eleven pairs,
# 2026-11-28. Shorter turns are less like a run alone: after each, caches are cold, and what it awaited has come.
TURN_S = 2.0
GRACE_S = 5.0  # Time for a program to end by itself after it was asked to


@dataclass(slots=True)
class TurningRun:
    """A run's process, and those that it starts, with the times in which they computed."""

    start: Callable[[], subprocess.Popen[bytes]]
    limit_s: float  # of computing
    child: subprocess.Popen[bytes] | None = None  # None before its first turn
    began: float = 0.0  # of the present turn, in s of the monotonic clock
    turns: list[tuple[float, float]] = field(default_factory=list)  # same
    stopped: list[psutil.Process] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it computed, in s."""
        return sum(end - begin for begin, end in self.turns)

    @property
    def going(self) -> bool:
        """Whether it has neither ended nor reached its limit."""
        ended = self.child is not None and self.child.poll() is not None
        return not ended and self.seconds < self.limit_s

    @property
    def code(self) -> int | None:
        """The exit code; None of a run that was ended at its limit."""
        return self.child.returncode if self.child and self.seconds < self.limit_s else None

    def compute(self, seconds: float) -> None:
        """Go on for so long and stop, or to the end of the process or of its time."""
        self.resume()
        self.child = self.child or self.start()
        try:
            self.child.wait(min(seconds, self.limit_s - self.seconds))
        except subprocess.TimeoutExpired:
            self.stop()
            return
        self.turns.append((self.began, time.monotonic()))

    def stop(self) -> None:
        """Stop the program and all that it has started, but not what ends them when tfdoctor is gone."""
        if self.child:
            with suppress(psutil.NoSuchProcess):
                self.stopped = psutil.Process(self.child.pid).children(recursive=True)
        for one in self.stopped:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
        self.turns.append((self.began, time.monotonic()))

    def resume(self) -> None:
        """Let it go on: a turn begins."""
        self.began = time.monotonic()
        for one in self.stopped:
            with suppress(psutil.NoSuchProcess):
                one.resume()
        self.stopped = []

    def own_ms(self, at_ms: Floats) -> Floats:
        """Return times of the monotonic clock, in ms, on one that stands while the process does."""
        if len(self.turns) == 1:
            return at_ms
        edges = np.array(self.turns)
        passed = np.repeat(np.cumsum([0.0, *np.diff(edges, axis=1).ravel()]), 2)[1:-1]
        own = np.interp(at_ms, MS_PER_S * edges.ravel(), MS_PER_S * (edges[0, 0] + passed))
        return np.asarray(own, np.float64)


def take_turns(processes: Sequence[TurningRun], turn_s: float = TURN_S) -> None:
    """Let processes compute by turns, each to its end or its limit; one that is left alone is not stopped.

    However this ends, all of them have ended after it.
    """
    try:
        with _stopping_with_us(processes):
            while going := [one for one in processes if one.going]:
                for one in going:
                    one.compute(turn_s if len(going) > 1 else one.limit_s)
    finally:
        for one in processes:
            one.resume()
        _end([one.child for one in processes if one.child])


@contextmanager
def _stopping_with_us(processes: Sequence[TurningRun]) -> Iterator[None]:
    """Stop the runs while tfdoctor is stopped: Ctrl-Z does not reach their sessions."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        computing = [one for one in processes if one.child and not one.stopped]
        for one in computing:
            one.stop()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        for one in computing:
            one.resume()
        signal.signal(number, stop)

    before = signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the processes of runs, all of them: a program may leave some behind."""
    for number, grace in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        left = [child for child in children if child.poll() is None]
        for child in left:
            os.killpg(child.pid, number)
        for child in left:
            with suppress(subprocess.TimeoutExpired):
                child.wait(grace)
    for child in children:
        with suppress(ProcessLookupError):  # none was left
            os.killpg(child.pid, signal.SIGKILL)
