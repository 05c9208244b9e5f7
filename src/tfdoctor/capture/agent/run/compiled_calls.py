"""Which compiled function a line calls: it has no frame, so that the stack does not show it.

A call of numpy.concatenate is told from a loop in Python by the names that the code loads where the call's own
expression begins, and by what they stand for. Python has such positions since 3.11.
"""

from __future__ import annotations

import builtins
import dis
import functools
import types

from ..process.stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

CALLS = ("CALL", "PRECALL")  # How the names of the instructions begin that call
FIRST, REST = ("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_ATTR", "LOAD_METHOD")  # What loads a dotted name
BESIDE = ("PUSH_NULL", "PRECALL", "KW_NAMES", "LOAD_CONST", "EXTENDED_ARG")  # What a call has besides


def compiled_call(frame: FrameType) -> str:
    """Return 'numpy.concatenate' where a frame of the user's is calling that; "" is anything else."""
    code = frame.f_code
    if user_file(code.co_filename) is None or not hasattr(code, "co_positions"):
        return ""
    if not dis.opname[code.co_code[frame.f_lasti]].startswith(CALLS):
        return ""
    names = _names(code, frame.f_lasti)
    return _function(frame, [*names]) if names else ""


@functools.lru_cache(maxsize=500)
def _names(code: CodeType, instruction: int) -> tuple[str, ...]:
    """Return the parts of the plain or dotted name that an instruction calls; () where it calls something else."""
    names: list[str] = []
    place = None
    for one in reversed([*dis.get_instructions(code)]):
        start = one.positions and (one.positions.lineno, one.positions.col_offset)
        if one.offset == instruction:
            place = start if start and None not in start else None
        elif place is None or start != place or one.opname in BESIDE:
            continue
        elif one.opname in REST:
            names.append(one.argval)
        else:
            return (one.argval, *reversed(names)) if one.opname in FIRST else ()
    return ()


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
