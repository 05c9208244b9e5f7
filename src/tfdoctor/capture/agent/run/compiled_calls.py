"""Which compiled function a line calls: it has no frame, so that the stack does not show it.

A call of numpy.concatenate is told from a loop in Python by the call's own text, at the instruction that is
running, and by what the names in it stand for. Python has such positions since 3.11.
"""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import re
import sys
import types

from ..process.kept import io
from ..process.stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

CALL = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)\(")  # A call of a plain or dotted name
CALLS = ("CALL", "PRECALL")  # How the names of the instructions begin that call
LINES = 2  # Where an entry of linecache's has the lines
MOST_BYTES = 2_000_000  # Of a source file, as far as it is read


def compiled_call(frame: FrameType) -> str:
    """Return 'numpy.concatenate' where a frame of the user's is calling that; "" is anything else."""
    code = frame.f_code
    if user_file(code.co_filename) is None or not hasattr(code, "co_positions"):
        return ""
    if not dis.opname[code.co_code[frame.f_lasti]].startswith(CALLS):
        return ""
    found = CALL.match(_text(code, frame.f_lasti))
    return _function(frame, found.group(1).split(".")) if found else ""


def _text(code: CodeType, instruction: int) -> str:
    """Return what the file has from where an instruction's expression begins, up to the end of the line."""
    place = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if place is None or place[0] is None or place[2] is None:
        return ""
    lines = _lines(code.co_filename)
    line = lines[place[0] - 1] if place[0] <= len(lines) else b""
    return line[place[2] :].decode(errors="replace")


@functools.lru_cache(maxsize=50)
def _lines(name: str) -> list[bytes]:
    """Return the lines of a source file, or of a notebook's cell, without loading a module for it."""
    cells = getattr(sys.modules.get("linecache"), "cache", {})
    if name in cells and len(cells[name]) > LINES:
        return [str(line).encode() for line in cells[name][LINES]]
    try:
        with io.open(name, "rb") as file:
            return file.read(MOST_BYTES).splitlines()
    except OSError:
        return []


def _function(frame: FrameType, names: list[str]) -> str:
    """Return the full name of what dotted names stand for, if it is compiled; nothing of the user's is run."""
    code, first = frame.f_code, names[0]
    if first in code.co_varnames or first in code.co_cellvars or first in code.co_freevars:
        return ""
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
