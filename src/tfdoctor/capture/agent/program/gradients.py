"""What eager back-propagation computes that nothing uses: the operations of a few gradients, and their uses.

TensorFlow's tape goes back through all that the loss was computed from, whichever gradients it is asked for.
"""

from __future__ import annotations

import collections
import sys
import weakref

from ..process.journal import guarded
from ..process.kept import threads, time
from ..process.stack import here, way_here
from ..stream import watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..process.declared import Foreign
    from ..process.journal import Journal
    from ..process.stack import Line, Way
    from ..stream import Args, Enter, Held

MODULE = "tensorflow.python.pywrap_tfe"
TENSORS = "tensorflow.python.framework.ops"
# The functions that start an operation, which every generated function of TensorFlow looks up in their module, and
# where in their arguments are its type and its inputs.
STARTS = {
    "TFE_Py_FastPathExecute": (1, slice(3, None)),
    "TFE_Py_Execute": (2, slice(3, 4)),
    "TFE_Py_ExecuteCancelable": (2, slice(3, 4)),
}
# Methods of eager tensors that take the value without an operation.
READS = ("_numpy", "_copy_nograd", "__dlpack__")
MOST = 300_000  # Operations to note at most, which cost a few microseconds each: a loop may take no more gradients

# The call of a line whose operations are noted first, for earlier ones are slower, and how many are noted.
FIRST, CALLS = 3, 2
# Calls after which a gradient is used or gone: the next one begins before the script's names have its results.
AFTER = 2
NEEDED = FIRST + CALLS - 1 + AFTER  # Calls of a line after which the uses of its gradients are known
# Lines that take gradients, variables and types of operations to tell.
MOST_LINES, MOST_NAMES, MOST_TYPES = 16, 8, 5
NS_PER_MS = 1e6

# An operation, the numbers of its tensors, which are used once in a process, and its time: Python's since the
# operation before it, and that of its call.
Started = collections.namedtuple(  # noqa: PYI024  # no import of `typing` in the user's process
    "Started", ("type", "inputs", "outputs", "python_ns", "call_ns")
)


class UnusedGradients:
    """The lines that take gradients outside of tf.functions, and what is noted of their calls.

    While the gradients of a thread are followed, it stands before the functions that start operations.
    """

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.wanted = True
        self.originals: list[tuple[Foreign, str, object]] = []  # what it stands before
        self.again()

    def again(self) -> None:
        """Forget what was noted."""
        self.release()
        self.lines: dict[Way, GradientLine] = {}
        self.beyond = 0  # calls in the traced steps of more lines than are kept
        self.resting = self.nested = self.given_up = False
        self.thread = self.count = self.calls_ns = self.last_ns = 0

    def release(self) -> None:
        """Leave TensorFlow as it was."""
        for holder, name, original in self.originals:
            setattr(holder, name, original)
        self.originals.clear()
        self.open: list[GradientCall] = []  # calls that are over, whose results may be used
        self.current: GradientCall | None = None  # the call under way, which started what comes

    @guarded("gradients")
    def rest(self) -> None:
        """Note no more operations: the traced steps begin, or the recording ends."""
        self.resting = True
        self.release()

    # Calls of `tape.gradient`

    @guarded("gradients")
    def begins(self, tape: Foreign, sources: object, *, traced: bool) -> GradientCall | None:
        """Count a call at this line, and begin to note its operations where it is of interest.

        ``traced`` is whether a window is open.
        """
        if not self.wanted or (self.resting and not traced):
            return None
        way = way_here()
        line = self.lines.get(way)
        if line is None:
            if len(self.lines) >= MOST_LINES:
                self.beyond += traced
                return None
            line = self.lines[way] = GradientLine(here())
        line.traced += traced
        if self.resting or not self._may_note():
            return None
        # The step of the call before is over, and earlier gradients have been used or not.
        line.calls += 1
        for earlier in line.noted:
            if earlier.passes(self.calls_ns, self.count) and earlier in self.open:  # it has not failed
                self.open.remove(earlier)
                earlier.judge()
        if not FIRST <= line.calls < FIRST + CALLS:
            if all(call.followed >= AFTER for each in self.lines.values() for call in each.noted):
                self.release()
            return None
        call = GradientCall(_leaves(sources), tape.watched_variables())
        line.noted.append(call)
        self._stand_before()
        self.current, self.last_ns = call, time.perf_counter_ns()
        call.step = time.perf_counter_ns(), self.calls_ns, self.count
        return call

    @guarded("gradients")
    def ends(self, call: GradientCall, result: object, error: BaseException | None = None) -> None:
        """The call is over: note the gradients, which the script may keep."""
        self.current = None
        if error is not None:
            return
        for gradient in _leaves(result):
            values = getattr(gradient, "values", gradient)  # of the rows of a table
            known = _id(values)
            call.results.append((known, (lambda: None) if known is None else weakref.ref(values)))
        if not self.given_up:
            self.open.append(call)

    def describe(self) -> list[dict[str, object]]:
        """Return what is known of each line; of those beyond the kept ones, that they are not known."""
        entries = [line.describe() for line in self.lines.values()]
        return [*entries, {"traced": self.beyond}] if self.beyond else entries

    # Operations

    def _may_note(self) -> bool:
        """Say whether this thread's operations can be noted: TensorFlow 2.2 and later, and one thread at a time."""
        free = not self.originals or self.thread == threads.get_ident()
        return MODULE in sys.modules and free and self.current is None and not self.given_up

    def _stand_before(self) -> None:
        if self.originals:
            return
        self.thread = threads.get_ident()
        for name, (kind, given) in STARTS.items():
            self._replace(sys.modules[MODULE], name, self._noting(kind, given))
        tensors = getattr(sys.modules.get(TENSORS), "_EagerTensorBase", None)
        for name in READS:
            self._replace(tensors, name, self._reads)

    def _replace(self, holder: object, name: str, enter: Enter) -> None:
        original = getattr(holder, "__dict__", {}).get(name)
        if original is not None:
            self.originals.append((holder, name, original))
            setattr(holder, name, watched(self.log, original, name, enter))

    def _noting(self, kind: int, given: slice) -> Enter:
        """Return the listener of calls that start an operation, whose type and inputs are at these places."""

        def enter(held: Held, args: Args, *_: object) -> None:
            if threads.get_ident() != self.thread:
                return
            if self.nested:  # within an operation that is a function of Python: part of its time
                self._takes(args[given])
                return
            held.append((leave, (args, time.perf_counter_ns())))
            self.nested = True

        def leave(call: tuple[Args, int], result: object, error: BaseException | None) -> None:
            args, began = call
            ended, self.nested = time.perf_counter_ns(), False
            if error is None:
                self._note(str(args[kind]), args[given], result, (began, ended))

        return enter

    def _note(self, kind: str, given: object, result: object, times_ns: tuple[int, int]) -> None:
        began, ended = times_ns
        self.count += 1
        self.calls_ns += ended - began
        if self.count > MOST:
            self.given_up = True
            self.release()
        outputs, call = _ids(result), self.current
        inputs = self._takes(given, unless=call if outputs else None)
        if call is not None and outputs:
            call.started.append(Started(kind, inputs, outputs, began - self.last_ns, ended - began))
        self.last_ns = time.perf_counter_ns()

    def _reads(self, _: Held, args: Args, *__: object) -> None:
        self._takes(args[0])

    def _takes(self, given: object, unless: GradientCall | None = None) -> tuple[int, ...]:
        """Note tensors as used; not for the call under way that may be the only one to use the results."""
        inputs = _ids(given)
        for call in self.open if self.current is None else [*self.open, self.current]:
            if call is not unless:
                call.used.update(inputs)
        return inputs


class GradientLine:
    """A line that takes gradients, with the way to it."""

    def __init__(self, at: Line | None) -> None:
        self.at = at
        self.calls = 0
        self.traced = 0  # of them while a window was open
        self.noted: list[GradientCall] = []

    def describe(self) -> dict[str, object]:
        """Return the call with the least useless work, so that what only some steps use is not called useless."""
        entry: dict[str, object] = {"at": self.at, "traced": self.traced, "too_few": self.calls < NEEDED}
        known = [call for call in self.noted if call.judged and call.trains]
        if len(known) < CALLS:
            return entry
        call = min(known, key=lambda call: sum(one.python_ns + one.call_ns for one in call.useless))
        return {**entry, "followed": True, **call.describe()}


class GradientCall:
    """A call of ``tape.gradient``: the operations that it started, and which results were used later."""

    def __init__(self, sources: Sequence[Foreign], watched: Sequence[Foreign]) -> None:
        # Variables by the numbers of their handles, tensors by their own:
        self.sources = [_id(getattr(source, "handle", source)) for source in sources]
        self.names = {_id(getattr(variable, "handle", variable)): str(variable.name) for variable in watched}
        self.started: list[Started] = []
        self.used: set[int] = set()  # tensors that other operations took, or that were read
        self.results: list[tuple[int | None, Callable[[], object]]] = []  # of each source
        self.followed = 0  # further calls of the line
        self.step = 0, 0, 0  # ns, ns in operations, operations; at first the clock and the counts at its beginning
        self.useless: list[Started] = []
        self.judged = False

    def passes(self, calls_ns: int, count: int) -> bool:
        """Another call of the line begins, after so many ns in operations; say whether uses are known by now."""
        self.followed += 1
        if self.followed == 1:
            began, calls_before, before = self.step
            self.step = time.perf_counter_ns() - began, calls_ns - calls_before, count - before
        return self.followed == AFTER

    def judge(self) -> None:
        """Find what was started for no result that was used, or that the script still has."""
        self.judged = True
        self.used |= {known for known, alive in self.results if known is not None and alive() is not None}
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

    def describe(self) -> dict[str, object]:
        """Return the variables without use, and the time of the work for them, in ms."""
        trained = {source for source, (known, _) in zip(self.sources, self.results) if known in self.used}  # noqa: B905
        names = [name for known, name in self.names.items() if known not in trained]
        step_ns, calls_ns, count = self.step
        return {
            "variables": len(self.names),
            "unused": len(names),
            "returned": sum(known is not None and known not in self.used for known, _ in self.results),
            "names": names[:MOST_NAMES],
            "operations": len(self.useless),
            "types": list(self._types()),
            "python_ms": sum(one.python_ns for one in self.useless) / NS_PER_MS,
            "calls_ms": sum(one.call_ns for one in self.useless) / NS_PER_MS,
            "step_ms": step_ns / NS_PER_MS,
            "step_calls_ms": calls_ns / NS_PER_MS,
            "step_operations": count,
        }

    def _types(self) -> Iterator[tuple[str, int, float]]:
        times: dict[str, list[int]] = {}
        for one in self.useless:
            times.setdefault(one.type, []).append(one.python_ns + one.call_ns)
        for name in sorted(times, key=lambda name: -sum(times[name]))[:MOST_TYPES]:
            yield name, len(times[name]), sum(times[name]) / NS_PER_MS


def _id(tensor: Foreign) -> int | None:
    number = getattr(tensor, "_id", None)
    return number if isinstance(number, int) else None


def _ids(values: object) -> tuple[int, ...]:
    if isinstance(values, (list, tuple)):
        return tuple(number for each in values for number in _ids(each))
    number = _id(values)
    return () if number is None else (number,)


def _leaves(value: object) -> list[Foreign]:
    """Return what a nested structure holds, in TensorFlow's order: a dictionary's by its sorted keys."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, (list, tuple)) else [value]
