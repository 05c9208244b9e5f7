"""The Python numbers that a traced function was given: each new value is traced anew."""

from __future__ import annotations

from types import FunctionType

from ..process.objects import keep
from ..process.stack import defined_at, user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType
    from typing import TypedDict

    from ..process.declared import Foreign
    from ..process.objects import Notes
    from ..process.stack import Line

    class TracedNumberEntry(TypedDict):
        """A parameter, the value that it got, and the place of that among the arguments, from the last."""

        name: str
        value: str
        place: int


MOST_NUMBERED = 50  # Traces at a place that are told with the Python numbers that the function got
MOST = 8  # Numbers of a call that are told
SHOWN = 24  # Characters of a value
MOST_BITS = 64  # Bits of a number that is told in decimal digits: for very large ones Python refuses to
MOST_WRAPPERS = 10  # Wrappers around a function: a chain of them may be a circle
PLAIN = frozenset((bool, int, float, str))  # Types that are part of a graph; a number of NumPy becomes a tensor


class TracedArguments:
    """What is told about the functions that calls trace, and about their arguments."""

    def __init__(self) -> None:
        self.made: Notes[int] = {}  # the number of each function object
        self.objects = 0
        self.own: Notes[int] = {}  # the number of the first function object of a Python function
        self.numbered: dict[object, int] = {}  # traces that were told with their numbers

    def told(
        self, function: object, place: object, args: Sequence[object], kwargs: dict[str, object]
    ) -> dict[str, object]:
        """Return what the file tells of a call at a place that traced a function object."""
        made = self.made.get(id(function))
        if made is None:
            made = keep(self.made, function, self.objects)
            self.objects += 1
        number = self.numbered[place] = self.numbered.get(place, 0) + 1
        few = number <= MOST_NUMBERED
        return {
            "made": made,
            "defined": defined(function),
            "kept": self._is_kept(function, made),
            "numbers": traced_numbers(function, args, kwargs) if few else [],
            "given": len(args) + len(kwargs),
        }

    def _is_kept(self, function: object, made: int) -> bool:
        """Say whether a function object traces the same Python function as an earlier one did."""
        own = own_function(function)
        if own is None:
            return False
        first = self.own.get(id(own))
        return (keep(self.own, own, made) if first is None else first) != made


def defined(function: Foreign) -> Line | None:
    """Return the user's line where a tf.function is defined, below wrappers; None where that is not theirs."""
    own = own_function(function)
    return None if own is None else defined_at(own)


def own_function(function: Foreign) -> FunctionType | None:
    """Return the user's Python function that a tf.function traces, below wrappers; None where it is not theirs."""
    own: Foreign = None
    for python in _of_user(function):
        own = getattr(python, "__func__", python)  # a method is a new object each time
    return own if isinstance(own, FunctionType) else None


def _of_user(function: Foreign) -> Iterator[Foreign]:
    """Yield the functions of the user's that a tf.function traces, from the outermost wrapper on."""
    python: Foreign = getattr(function, "python_function", None)
    for _ in range(MOST_WRAPPERS):
        if python is None:
            return
        name = getattr(getattr(python, "__code__", None), "co_filename", None)
        if isinstance(name, str) and user_file(name) is not None:
            yield python
        python = getattr(python, "__wrapped__", None) or getattr(python, "func", None)


def traced_numbers(function: Foreign, args: Sequence[object], kwargs: dict[str, object]) -> list[TracedNumberEntry]:
    """Return the numbers, texts and truth values among the arguments of a call."""
    names = (*_parameters(function), *[None] * len(args))[: len(args)]
    given = [*zip(names, args), *kwargs.items()]  # noqa: B905 - Python 3.9
    told: list[TracedNumberEntry] = [
        {"name": name, "value": _shown(value), "place": len(given) - number}
        for number, (name, value) in enumerate(given)
        if name is not None and type(value) in PLAIN
    ]
    return told[:MOST]


def _parameters(function: Foreign) -> Sequence[str]:
    """Return the names of the parameters that positional arguments are given to; () where they are not known."""
    python = next(_of_user(function), None)
    if python is None or getattr(function.python_function, "func", None) is not None:
        return ()  # of functools.partial, which has given some arguments already
    code: CodeType = python.__code__
    names = code.co_varnames[: code.co_argcount]
    return names[1:] if getattr(python, "__self__", None) is not None else names


def _shown(value: object) -> str:
    if isinstance(value, str) and len(value) > SHOWN:
        return repr(f"{value[: SHOWN // 3]}...{value[-SHOWN // 2 :]}")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return hex(value)[:SHOWN]
    return repr(value)
