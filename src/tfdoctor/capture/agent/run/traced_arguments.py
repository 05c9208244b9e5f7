"""The Python numbers that a traced function was given: each new value is traced anew.

Where the caller passes a plain name, the line that assigned it is told as well, as the bytecode has it.
"""

from __future__ import annotations

import dis

from ..stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, FrameType
    from typing import TypedDict

    from ..declared import Foreign
    from ..stack import Line

    class TracedNumberEntry(TypedDict):
        """A parameter, the value that it got, and the line that assigned that."""

        name: str
        value: str
        at: Line | None


MOST = 8
"""Numbers of a call that are told."""

SHOWN = 24
"""Characters of a value."""

PLAIN = frozenset((bool, int, float, str))
"""Types that are part of a graph; a number of NumPy becomes a tensor."""

SKIPPED = ("PRECALL", "KW_NAMES", "CACHE", "EXTENDED_ARG")
"""Instructions between the arguments of a call and the call."""

LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")
STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
"""How the instructions begin that read and assign a name; Python 3.13 has some that do two at once."""


def code_of(function: Foreign) -> CodeType | None:
    """Return the code of the Python function that a tf.function traces, below wrappers; None without one."""
    python: Foreign = getattr(function, "python_function", None)
    while python is not None and not hasattr(python, "__code__"):
        python = getattr(python, "__wrapped__", None) or getattr(python, "func", None)
    return None if python is None else python.__code__


def defined(function: Foreign) -> Line | None:
    """Return the user's line where a tf.function is defined; None where that is not theirs."""
    code = code_of(function)
    if code is None or user_file(code.co_filename) is None:
        return None
    return code.co_filename, code.co_firstlineno


def traced_numbers(
    function: Foreign, args: Sequence[object], kwargs: dict[str, object], caller: FrameType | None
) -> list[TracedNumberEntry]:
    """Return the numbers, texts and truth values among the arguments of a call."""
    given = dict(zip(_parameters(code_of(function), args), args))  # noqa: B905 - Python 3.9
    numbers = {name: value for name, value in {**given, **kwargs}.items() if type(value) in PLAIN}
    if not numbers:
        return []
    names = _passed(caller, len(args)) if caller is not None and not kwargs else []
    lines = dict(zip(given, (_assigned(caller, name) for name in names)))  # noqa: B905 - Python 3.9
    return [
        {"name": name, "value": repr(value)[:SHOWN], "at": lines.get(name)}
        for name, value in list(numbers.items())[:MOST]
    ]


def _parameters(code: CodeType | None, args: Sequence[object]) -> Sequence[str]:
    """Return the names of the positional parameters that arguments are given to."""
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    bound = names[:1] == ("self",) and not (args and hasattr(args[0], "__dict__"))
    return names[1:] if bound else names


def _passed(caller: FrameType, count: int) -> list[str | None]:
    """Return the plain names that are the arguments of the call which a frame is making; [] where unknown."""
    instructions = dis.get_instructions(caller.f_code)
    *before, _ = (each for each in instructions if each.offset <= caller.f_lasti)  # the call itself
    loaded: list[str | None] = []
    for instruction in before:
        if not instruction.opname.startswith(SKIPPED):
            loaded += _names(instruction, LOADS) or [None]
    return loaded[-count:] if len(loaded) >= count else []


def _assigned(caller: FrameType | None, name: str | None) -> Line | None:
    """Return the last line above the call that assigns a name in the calling function."""
    if caller is None or name is None or user_file(caller.f_code.co_filename) is None:
        return None
    line = None
    for number, instruction in _lines(caller.f_code):
        if number < caller.f_lineno and name in _names(instruction, STORES):
            line = number
    return None if line is None else (caller.f_code.co_filename, line)


def _lines(code: CodeType) -> Iterator[tuple[int, dis.Instruction]]:
    """Yield the instructions of a function with their lines."""
    starts, line = dict(dis.findlinestarts(code)), 0
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        yield line, instruction


def _names(instruction: dis.Instruction, kinds: tuple[str, ...]) -> list[str | None]:
    """Return the names that an instruction of some kinds is about."""
    if not instruction.opname.startswith(kinds):
        return []
    value = instruction.argval
    return list(value) if isinstance(value, tuple) else [value]
