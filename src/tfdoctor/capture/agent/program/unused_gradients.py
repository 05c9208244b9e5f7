"""What eager back-propagation computes that nothing uses: the operations of a few gradients, and their uses.

TensorFlow's tape goes back through all that the loss was computed from, whichever gradients it is asked for.
"""

from __future__ import annotations

import weakref

from ..process.journal import guarded
from ..process.kept import time
from ..process.stack import here, way_here
from .eager_operations import EagerOperations, id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..process.declared import Foreign
    from ..process.journal import Journal
    from ..process.stack import Line, Way
    from .eager_operations import Started

# The call of a line whose operations are noted first, for earlier ones are slower, and how many are noted.
FIRST, CALLS = 3, 2
# Calls after which a gradient is used or gone: the next one begins before the script's names have its results.
AFTER = 2
NEEDED = FIRST + CALLS - 1 + AFTER  # Calls of a line after which the uses of its gradients are known
# Lines that take gradients, variables and types of operations to tell.
MOST_LINES, MOST_NAMES, MOST_TYPES = 16, 8, 5

NS_PER_MS = 1e6


class UnusedGradients:
    """The lines that take gradients outside of tf.functions, and what is noted of their calls."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.operations = EagerOperations(log)
        self.wanted = True
        self.again()

    def again(self) -> None:
        """Forget what was noted."""
        self.operations.release()
        self.operations = EagerOperations(self.log)
        self.lines: dict[Way, GradientLine] = {}
        self.beyond = 0  # calls in the traced steps of more lines than are kept
        self.resting = False

    @guarded("gradients")
    def rest(self) -> None:
        """Note no more operations: the traced steps begin, or the recording ends."""
        self.resting = True
        self.operations.release()

    @guarded("gradients")
    def begins(self, tape: Foreign, sources: object, *, traced: bool) -> GradientCall | None:
        """Count a call of ``tape.gradient`` at this line, and begin to note its operations where it is of interest.

        ``traced`` is whether a window is open.
        """
        if not self.wanted or (self.resting and not traced):
            return None
        line = self._line()
        if line is None:
            self.beyond += traced
            return None
        line.traced += traced
        if self.resting or not self.operations.may_note():
            return None
        line.arrive(self.operations)
        if not FIRST <= line.calls < FIRST + CALLS:
            if not any(one.open for one in self.lines.values()):
                self.operations.release()
            return None
        call = GradientCall(_leaves(sources), tape.watched_variables())
        line.noted.append(call)
        self.operations.begin(call)
        call.begins(self.operations)
        return call

    def _line(self) -> GradientLine | None:
        way = way_here()
        line = self.lines.get(way)
        if line is None and len(self.lines) < MOST_LINES:
            line = self.lines[way] = GradientLine(here())
        return line

    @guarded("gradients")
    def ends(self, call: GradientCall, result: object, error: BaseException | None = None) -> None:
        """The call is over."""
        self.operations.current = None
        if error is None:
            call.ends(_leaves(result))
            if not self.operations.given_up:
                self.operations.open.append(call)

    def describe(self) -> list[dict[str, object]]:
        """Return what is known of each line; of those beyond the kept ones, that they are not known."""
        entries = [line.describe() for line in self.lines.values()]
        return [*entries, {"traced": self.beyond}] if self.beyond else entries


class GradientLine:
    """A line that takes gradients, with the way to it."""

    def __init__(self, at: Line | None) -> None:
        self.at = at
        self.calls = 0
        self.traced = 0  # of them while a window was open
        self.noted: list[GradientCall] = []

    @property
    def open(self) -> bool:
        """Whether a call of it is being followed."""
        return any(call.followed < AFTER for call in self.noted)

    def arrive(self, operations: EagerOperations) -> None:
        """Another call begins: the step of the one before is over, and earlier gradients have been used or not."""
        self.calls += 1
        for call in self.noted:
            call.passes(operations)

    def describe(self) -> dict[str, object]:
        """Return the call with the least useless work, so that what only some steps use is not called useless."""
        entry: dict[str, object] = {"at": self.at, "traced": self.traced, "too_few": self.calls < NEEDED}
        known = [call for call in self.noted if call.followed >= AFTER and call.trains]
        if len(known) < CALLS:
            return entry
        call = min(known, key=lambda one: one.useless_ns)
        return {**entry, "followed": True, **call.describe()}


class GradientCall:
    """A call of ``tape.gradient``: the operations that it started, and which results were used later."""

    def __init__(self, sources: Sequence[Foreign], watched: Sequence[Foreign]) -> None:
        self.sources = [_variable_id(source) for source in sources]
        self.names = {_variable_id(variable): str(variable.name) for variable in watched}
        self.started: list[Started] = []
        self.used: set[int] = set()  # tensors that other operations took, or that were read
        self.results: list[tuple[int | None, Callable[[], object]]] = []  # of each source
        self.followed = 0  # further calls of the line
        self.step = 0, 0, 0  # ns, ns in operations, operations
        self.useless: list[Started] = []

    def begins(self, operations: EagerOperations) -> None:
        """Note the clock and the counts at the beginning of the step."""
        self.step = time.perf_counter_ns(), operations.calls_ns, operations.count

    def ends(self, results: Sequence[Foreign]) -> None:
        """Note the gradients, which the script may keep."""
        for result in results:
            values = getattr(result, "values", result)  # of the rows of a table
            known = id_of(values)
            self.results.append((known, _nothing if known is None else weakref.ref(values)))

    def passes(self, operations: EagerOperations) -> None:
        """Another call of the line begins."""
        self.followed += 1
        if self.followed == 1:
            began, calls_ns, count = self.step
            now = time.perf_counter_ns()
            self.step = now - began, operations.calls_ns - calls_ns, operations.count - count
        if self.followed == AFTER:
            operations.open.remove(self)
            self._judge()

    def _judge(self) -> None:
        """Find what was started for no result that was used, or that the script still has."""
        kept = {known for known, alive in self.results if known is not None and alive() is not None}
        self.used |= kept
        needed = set(self.used)
        for one in reversed(self.started):
            if needed.isdisjoint(one.outputs):
                self.useless.append(one)
            else:
                needed.update(one.inputs)
        self.started = []

    @property
    def trains(self) -> bool:
        """Whether a gradient was used at all; that NumPy reads each, without an operation, is not seen."""
        return any(known in self.used for known, _ in self.results)

    @property
    def useless_ns(self) -> int:
        """The time of what was started for nothing, with Python's before it."""
        return sum(one.python_ns + one.call_ns for one in self.useless)

    def describe(self) -> dict[str, object]:
        """Return the variables without use, and the time of the work for them, in ms."""
        trained = {
            source
            for source, (known, _) in zip(self.sources, self.results)  # noqa: B905
            if known in self.used
        }
        names = [name for known, name in self.names.items() if known not in trained]
        step_ns, calls_ns, count = self.step
        return {
            "variables": len(self.names),
            "unused": len(names),
            "returned": sum(known is not None and known not in self.used for known, _ in self.results),
            "names": names[:MOST_NAMES],
            "operations": len(self.useless),
            "types": list(_types(self.useless)),
            "python_ms": sum(one.python_ns for one in self.useless) / NS_PER_MS,
            "calls_ms": sum(one.call_ns for one in self.useless) / NS_PER_MS,
            "step_ms": step_ns / NS_PER_MS,
            "step_calls_ms": calls_ns / NS_PER_MS,
            "step_operations": count,
        }


def _types(started: Sequence[Started]) -> Iterator[tuple[str, int, float]]:
    """Yield the types of operations that take longest, with their number and ms."""
    times: dict[str, list[int]] = {}
    for one in started:
        times.setdefault(one.type, []).append(one.python_ns + one.call_ns)
    for name in sorted(times, key=lambda name: -sum(times[name]))[:MOST_TYPES]:
        yield name, len(times[name]), sum(times[name]) / NS_PER_MS


def _variable_id(variable: Foreign) -> int | None:
    """Return the number of a variable's handle; of a tensor its own."""
    return id_of(getattr(variable, "handle", variable))


def _leaves(value: object) -> list[Foreign]:
    """Return what a nested structure holds, in TensorFlow's order: a dictionary's by its sorted keys."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _nothing() -> None:
    """Stand for a reference to no tensor."""
