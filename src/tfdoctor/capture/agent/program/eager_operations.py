"""The operations that a thread starts from Python, noted for a few steps: their tensors, and their time."""

from __future__ import annotations

import sys

from ..process.frames import hide
from ..process.journal import guarded
from ..process.kept import threads, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ..process.declared import Foreign
    from ..process.journal import Journal

    class Follower(Protocol):
        """What is told of operations."""

        started: list[Started]
        used: set[int]


MODULE = "tensorflow.python.pywrap_tfe"
TENSORS = "tensorflow.python.framework.ops"

# The functions that start an operation: every generated function of TensorFlow looks them up in their module.
FAST, PLAIN = "TFE_Py_FastPathExecute", ("TFE_Py_Execute", "TFE_Py_ExecuteCancelable")
# Methods of eager tensors that take the value without an operation.
READS = ("_numpy", "_copy_nograd", "__dlpack__")
MOST = 300_000  # Operations to note at most, which cost a few microseconds each: a loop may take no more gradients


class Started:
    """An operation; the numbers of its tensors are used once in a process."""

    __slots__ = ("call_ns", "inputs", "outputs", "python_ns", "type")

    def __init__(
        self, kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...], python_ns: int, call_ns: int
    ) -> None:
        self.type, self.inputs, self.outputs = kind, inputs, outputs
        self.python_ns = python_ns  # since the operation before it
        self.call_ns = call_ns


class EagerOperations:
    """Stands before the functions that start operations while something is followed."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.current: Follower | None = None  # the call under way, which started what comes
        self.open: list[Follower] = []  # calls that are over, whose results may be used
        self.originals: list[tuple[Foreign, str, object]] = []
        self.thread = 0
        self.count = self.calls_ns = self.last_ns = 0
        self.nested = self.given_up = False

    def may_note(self) -> bool:
        """Say whether this thread's operations can be noted: TensorFlow 2.2 and later, and one thread at a time."""
        free = not self.originals or self.thread == threads.get_ident()
        return MODULE in sys.modules and free and self.current is None and not self.given_up

    def begin(self, call: Follower) -> None:
        """Note the operations of a call from here on."""
        if not self.originals:
            self.thread = threads.get_ident()
            self._stand()
        self.current, self.last_ns = call, time.perf_counter_ns()

    def release(self) -> None:
        """Leave TensorFlow as it was."""
        for holder, name, original in self.originals:
            setattr(holder, name, original)
        self.originals.clear()
        self.open.clear()
        self.current = None

    def _stand(self) -> None:
        module: Foreign = sys.modules[MODULE]
        self._replace(module, FAST, lambda original: self._noting(original, 1, slice(3, None)))
        for name in PLAIN:
            self._replace(module, name, lambda original: self._noting(original, 2, slice(3, 4)))
        tensors: Foreign = getattr(sys.modules.get(TENSORS), "_EagerTensorBase", None)
        for name in READS:
            self._replace(tensors, name, self._reading)

    def _replace(self, holder: Foreign, name: str, wrap: Callable[[Foreign], Callable[..., object]]) -> None:
        original = getattr(holder, "__dict__", {}).get(name)
        if original is not None:
            self.originals.append((holder, name, original))
            setattr(holder, name, hide(wrap(original)))

    def _noting(self, original: Foreign, kind: int, given: slice) -> Callable[..., object]:
        """Return the function with a note of each call; its type and its inputs are at these places."""

        def start(*args: Foreign) -> object:
            if threads.get_ident() != self.thread:
                return original(*args)
            if self.nested:  # within an operation that is a function of Python: part of its time
                self._takes(args[given])
                return original(*args)
            self.nested, began = True, time.perf_counter_ns()
            try:
                result = original(*args)
            finally:
                self.nested = False
            self._note(str(args[kind]), args[given], result, (began, time.perf_counter_ns()))
            return result

        return start

    @guarded("eager operation")
    def _note(self, kind: str, given: object, result: object, times_ns: tuple[int, int]) -> None:
        began, ended = times_ns
        self.count += 1
        self.calls_ns += ended - began
        if self.count > MOST:
            self.given_up = True
            self.release()
        outputs, call = ids_of(result), self.current
        inputs = self._takes(given, unless=call if outputs else None) or ()
        if call is not None and outputs:
            lasting = began - self.last_ns, ended - began
            call.started.append(Started(kind, inputs, outputs, *lasting))
        self.last_ns = time.perf_counter_ns()

    @guarded("eager operation")
    def _takes(self, given: object, unless: Follower | None = None) -> tuple[int, ...]:
        """Note tensors as used; not for the call under way that may be the only one to use the results."""
        inputs = ids_of(given)
        for call in self.followed:
            if call is not unless:
                call.used.update(inputs)
        return inputs

    @property
    def followed(self) -> list[Follower]:
        """The calls whose tensors are looked for."""
        return self.open if self.current is None else [*self.open, self.current]

    def _reading(self, original: Foreign) -> Callable[..., object]:
        def read(tensor: Foreign, *args: object, **kwargs: object) -> object:
            self._takes(tensor)
            return original(tensor, *args, **kwargs)

        return read


def id_of(tensor: Foreign) -> int | None:
    """Return the number of an eager tensor; None of anything else."""
    number = getattr(tensor, "_id", None)
    return number if isinstance(number, int) else None


def ids_of(values: object) -> tuple[int, ...]:
    """Return the numbers of the eager tensors in a value or in nested lists."""
    if isinstance(values, (list, tuple)):
        return tuple(number for each in values for number in ids_of(each))
    number = id_of(values)
    return () if number is None else (number,)
