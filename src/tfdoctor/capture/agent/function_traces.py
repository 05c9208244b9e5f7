"""Which calls of each tf.function traced it anew, from its first call on, and how long calls take."""

from __future__ import annotations

import collections
import sys
from time import perf_counter_ns

from . import by_identity
from .journal import guarded
from .stack import user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .by_identity import Notes
    from .declared import Foreign
    from .journal import Journal
    from .stack import Line

    class FunctionTraceEntry(TypedDict):
        """A tf.function that was traced in several calls; times in ms, of calls outside of the window."""

        name: str
        at: Line | None  # the user's line that calls it
        calls: int
        traced: list[int]  # the numbers of the calls that traced it, from 0 on; the last ones
        tracings: int  # calls that traced it
        traced_ms: float | None  # median of calls that traced it, without the first
        call_ms: float | None  # median of the others that came last


FEWEST = 3
"""Calls that trace a function before it is worth a record: the second is often a last, smaller batch."""

MOST_CALLS = 64
"""Traced calls whose numbers are kept, of those that came last."""

MOST_FUNCTIONS = 1000
"""Functions to follow: a script may make one in every step."""


REMEMBERED = 256
"""Calls without a trace whose times are kept."""


class Calls:
    """The calls of one tf.function."""

    def __init__(self, name: str, at: Line | None) -> None:
        self.name, self.at = name, at
        self.number = 0
        self.tracings = 0  # as TensorFlow counts them: the first call may trace twice
        self.traced: list[tuple[int, float | None]] = []  # number, ms; None in the window
        # ns of the calls that did not trace, outside of the window:
        self.others: collections.deque[int] = collections.deque(maxlen=REMEMBERED)

    def describe(self) -> FunctionTraceEntry:
        """Return what the state file says."""
        return {
            "name": self.name,
            "at": self.at,
            "calls": self.number,
            "traced": [number for number, _ in self.traced[-MOST_CALLS:]],
            "tracings": len(self.traced),
            "traced_ms": _median([ms for _, ms in self.traced[1:] if ms is not None]),
            "call_ms": _median([ns / 1e6 for ns in self.others]),
        }


class FunctionTraces:
    """Follows the outermost calls of the tf.functions of a process."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.known: Notes[Calls] = {}

    @guarded("function traces")
    def called(self, function: Foreign, began_ns: int, *, outside: bool) -> None:
        """A call that began at a time of `perf_counter_ns` is over; `outside` says that it was not traced."""
        took_ns = perf_counter_ns() - began_ns
        calls = self.known.get(id(function)) or self._enter(function)
        if calls is None:
            return
        tracings = function.experimental_get_tracing_count()
        if tracings > calls.tracings:
            calls.tracings = tracings
            calls.traced.append((calls.number, took_ns / 1e6 if outside else None))
        elif outside:
            calls.others.append(took_ns)
        calls.number += 1

    def _enter(self, function: Foreign) -> Calls | None:
        if len(self.known) >= MOST_FUNCTIONS:
            return None
        name = str(getattr(function, "_name", ""))
        calls = Calls(name, user_line(sys._getframe(1)))
        return by_identity.keep(self.known, function, calls)

    def describe(self) -> list[FunctionTraceEntry]:
        """Return the functions that were traced in several calls."""
        return [
            calls.describe() for calls in list(self.known.values()) if len(calls.traced) >= FEWEST
        ]


def _median(times_ms: list[float]) -> float | None:
    return round(sorted(times_ms)[len(times_ms) // 2], 4) if times_ms else None
