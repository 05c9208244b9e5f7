"""Which calls of each tf.function traced it anew, from its first call on, and how long calls take."""

from __future__ import annotations

import collections
import sys

from ..process.journal import guarded
from ..process.kept import time
from ..process.objects import TRAINS, keep
from ..process.stack import user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..process.journal import Journal
    from ..process.objects import Marks, Notes
    from ..process.stack import Line

    Definition = tuple[str, int] | int


FEWEST = 3  # Calls that trace a function before it is worth a record: the second is often a last, smaller batch
MOST_CALLS = 64  # Traced calls whose numbers are kept, of those that came last
MOST_FUNCTIONS = 1000  # Functions to follow: a script may make one in every step
REMEMBERED = 256  # Calls without a trace whose times are kept


class Calls:
    """The calls of one tf.function: of all function objects of one definition that train the same variables."""

    def __init__(self, name: str, at: Line | None) -> None:
        self.name, self.at = name, at  # the user's line that calls it
        self.number = 0  # of its next call
        self.made = 0  # function objects: a script may make the function again and again
        self.traced: list[tuple[int, float | None]] = []  # number, ms; None in the window
        # ns of the calls that did not trace, outside of the window:
        self.others: collections.deque[int] = collections.deque(maxlen=REMEMBERED)

    def describe(self) -> dict[str, object]:
        """Return what the state file says; times in ms, of calls outside of the window."""
        return {
            "name": self.name,
            "at": self.at,
            "calls": self.number,
            "traced": [number for number, _ in self.traced[-MOST_CALLS:]],
            "tracings": len(self.traced),
            "made": self.made,
            # Without the first, and of the others that came last:
            "traced_ms": _median([ms for _, ms in self.traced[1:] if ms is not None]),
            "call_ms": _median([ns / 1e6 for ns in self.others]),
        }


class FunctionTraces:
    """Follows the outermost calls of the tf.functions of a process."""

    def __init__(self, log: Journal, graph_marks: Notes[Marks]) -> None:
        self.log, self.graph_marks = log, graph_marks
        # Of a function object: the calls that it shares, and its tracings as TensorFlow counts them.
        self.known: Notes[tuple[Calls, int]] = {}
        self.used: Notes[int] = {}  # the number of the variables that a function uses
        self.count = 0  # of such numbers so far
        self.functions: dict[tuple[str, Definition, tuple[int, bool]], Calls] = {}

    @guarded("function traces")
    def called(self, function: Foreign, began_ns: int, *, outside: bool) -> None:
        """A call that began at a time of `perf_counter_ns` is over; `outside` says that it was not traced."""
        took_ns = time.perf_counter_ns() - began_ns
        known = self.known.get(id(function)) or self._enter(function)
        if known is None:
            return
        (calls, before), tracings = known, function.experimental_get_tracing_count()
        if tracings > before:  # a first call may trace twice
            self.known[id(function)] = calls, tracings
            calls.traced.append((calls.number, took_ns / 1e6 if outside else None))
        elif outside:
            calls.others.append(took_ns)
        calls.number += 1

    def _enter(self, function: Foreign) -> tuple[Calls, int] | None:
        code = getattr(function.python_function, "__code__", None)
        # Of one that no line defines, such as a partial, the object itself:
        defined = id(function) if code is None else (code.co_filename, code.co_firstlineno)
        key = str(getattr(function, "_name", "")), defined, self._trains(function)
        if key not in self.functions:
            if len(self.functions) >= MOST_FUNCTIONS:
                return None
            self.functions[key] = Calls(key[0], user_line(sys._getframe(1)))
        calls = self.functions[key]
        calls.made += 1
        return keep(self.known, function, (calls, 0))

    def _trains(self, function: Foreign) -> tuple[int, bool]:
        """Return a number of the variables that a function uses, and whether it takes gradients.

        A model of its own, as in each fold of a cross-validation, needs functions of its own. Those of Keras that
        train and evaluate a model are defined at the same line; the order of a graph's variables is no certain one.
        """
        graph = getattr(getattr(function, "_concrete_variable_creation_fn", None), "graph", None)
        variables = list(getattr(graph, "trainable_variables", ()))
        number = next((self.used[id(one)] for one in variables if id(one) in self.used), None)
        if number is None:
            number = self.count = self.count + 1
            for one in variables:
                keep(self.used, one, number)
        return number, TRAINS in self.graph_marks.get(id(graph), {})

    def describe(self) -> list[dict[str, object]]:
        """Return the functions that were traced in several calls."""
        return [calls.describe() for calls in list(self.functions.values()) if len(calls.traced) >= FEWEST]


def _median(times_ms: list[float]) -> float | None:
    return round(sorted(times_ms)[len(times_ms) // 2], 4) if times_ms else None
