"""Which compiled function a line calls: it has no frame, so that the stack does not show it.

A call of numpy.concatenate is told from a loop in Python by the names that the code loads where the call's own
expression begins, and by what they stand for. Python has such positions since 3.11.
"""

from __future__ import annotations

import builtins
import dis
import itertools
import sys
import types

from ..process.stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

CALLS = ("CALL", "PRECALL")  # How the names of the instructions begin that call
FIRST, REST = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_ATTR", "LOAD_METHOD")  # What loads a dotted name
BESIDE = ("CACHE", "PUSH_NULL", "PRECALL", "KW_NAMES", "LOAD_CONST", "EXTENDED_ARG")  # What a call has besides
SHIFTED = ("LOAD_GLOBAL", "LOAD_ATTR") if sys.version_info >= (3, 12) else ("LOAD_GLOBAL",)  # A flag is below

PRODUCTS = (4, 17)  # a @ b and a @= b, of CPython's BINARY_OP (NB_MATRIX_MULTIPLY and NB_INPLACE_MATRIX_MULTIPLY)
LOOKED = 500  # Instructions: the arguments of a call rarely have more


def compiled_call(frame: FrameType) -> str:
    """Return 'numpy.concatenate' where a frame of the user's is calling that; "" is anything else."""
    code = frame.f_code
    if user_file(code.co_filename) is None or not hasattr(code, "co_positions"):
        return ""
    running = code.co_code  # made anew each time
    operation = dis.opname[running[frame.f_lasti]]
    if operation == "BINARY_OP" and running[frame.f_lasti + 1] in PRODUCTS:
        return "numpy.matmul"  # other libraries have frames there
    if not operation.startswith(CALLS):
        return ""
    names = _names(code, running, frame.f_lasti // 2)
    return _function(frame, names) if names else ""


def _names(code: CodeType, running: bytes, call: int) -> list[str]:
    """Return the parts of the plain or dotted name that an instruction calls; [] where it calls something else.

    A script as a whole may have ten thousand instructions, of which the last ones before the call are looked at.
    """
    first = max(0, call - LOOKED)
    places = [*itertools.islice(code.co_positions(), first, call + 1)]
    start = places[-1][0], places[-1][2]
    names: list[str] = []
    for at in range(call - 1, first - 1, -1) if None not in start else ():  # with -X no_debug_ranges
        place, operation = (places[at - first][0], places[at - first][2]), dis.opname[running[2 * at]]
        if None in place or place > start or operation in BESIDE:
            continue
        if place < start or operation not in FIRST + REST:
            break  # it is of before the expression, or what is called is no name
        number, before = running[2 * at + 1], at - 1
        while before >= 0 and dis.opname[running[2 * before]] == "EXTENDED_ARG":
            number, before = number + (running[2 * before + 1] << 8 * (at - before)), before - 1
        names.append(code.co_names[number >> (operation in SHIFTED)])
        if operation in FIRST:
            return names[::-1]
    return []


def _function(frame: FrameType, names: list[str]) -> str:
    """Return the full name of what dotted names stand for, if it is compiled; nothing of the user's is run."""
    first = names[0]
    within, found = "builtins", vars(builtins).get(first)
    if first in frame.f_globals:
        within, found = "", frame.f_globals[first]
    rest = names[1:]
    while rest and isinstance(found, types.ModuleType):
        within, found = found.__name__, vars(found).get(rest[0])
        names, rest = rest, rest[1:]
    function = found.__func__ if isinstance(found, types.MethodType) else found
    if found is None or isinstance(function, types.FunctionType):
        return ""  # it has frames of its own
    if not rest:
        return f"{within}.{names[0]}" if within else _builtin(found)
    return _method(type(found), rest[0]) if len(rest) == 1 else ""


def _builtin(found: object) -> str:
    if not isinstance(found, types.BuiltinFunctionType):
        return ""
    return f"{found.__module__}.{found.__name__}" if found.__module__ else ""


def _method(kind: type, name: str) -> str:
    method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if method is None or isinstance(method, (types.FunctionType, classmethod, staticmethod)):
        return ""
    return f"{kind.__module__}.{kind.__qualname__}.{name}"
