"""Which line is the user's: the innermost frame outside installed packages and the agent."""

from __future__ import annotations

import collections
import re
import sys
from functools import cache

from .kept import io, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType, FrameType

    from .declared import Foreign, Traceback, TracedFrame

    Line = tuple[str, int]  # a path, and the line's number
    Function = tuple[str, str]  # a module and a name in it
    Way = tuple[tuple[str, int, int], ...]  # paths, functions by their lines, and instructions, the innermost first
    Instructions = tuple[int, ...]  # ids of codes and instructions, the innermost first

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How the files of the agent and of what loads it begin: without a file where the latter has named them.
OURS = ("<tfdoctor>", HERE + os.sep, os.path.join(os.path.dirname(HERE), "site") + os.sep)
AGENT = sys.modules[__name__.rpartition(".")[0].rpartition(".")[0]]
# Scripts change their working directory; relative file names were made before that.
START: str = getattr(AGENT, "START", None) or os.getcwd()
# What code of a program without a file has in place of its name; "" of any other program.
MAIN: str = getattr(AGENT, "MAIN", "")

# Installed packages, the standard library, code without a file, AutoGraph's translations, and our own wrappers.
FOREIGN = re.compile(
    r"[\\/](site-packages|dist-packages|lib[\\/]python\d+(\.\d+)*)[\\/]|^<(?!i?python-input-)"
    r"|__autograph_generated_file|\(tfdoctor\)$"
)

# The outermost function of a fork that multiprocessing made, and the end of its file's name.
FORKED = "_bootstrap", "multiprocessing/process.py"

_known: dict[str, str | None] = {MAIN: MAIN or None}  # The user's path of each file name met so far


def name_files(names: Mapping[str, str | None]) -> None:
    """Set the user's path of some file names: a notebook's cells; None is not the user's."""
    _known.update(names)


def user_file(name: str) -> str | None:
    """Return the absolute path of a user's source file, or None when the file is not theirs."""
    if name not in _known:
        path = name if name.startswith("<") else os.path.normpath(os.path.join(START, name))
        foreign = FOREIGN.search(name) or path.startswith(OURS) or is_installed(path)
        _known[name] = None if foreign else path
    return _known[name]


def is_installed(path: str) -> bool:
    """Return whether an absolute path is of a package that was installed into a folder of the import path."""
    folders = [os.path.join(os.path.normpath(folder), "") for folder in sys.path if os.path.isabs(folder)]
    return any(
        path[len(folder) :].split(os.sep, 1)[0] in _installed(folder)
        for folder in folders
        if path.startswith(folder)
    )


@cache
def _installed(folder: str) -> frozenset[str]:
    """Return the folders and files at the top of a folder that installers list as theirs.

    Each installed distribution has a file RECORD of its files
    (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
    """
    names: set[str] = set()
    try:
        records = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:  # an entry that is no folder, or not there
        return frozenset()
    for record in records:
        try:
            with io.open(os.path.join(folder, record, "RECORD"), encoding="utf-8") as lines:
                names.update(line.split(",", 1)[0].strip('"').split("/", 1)[0] for line in lines)
        except (OSError, ValueError):  # installed in another way: its files are the user's
            continue
    return frozenset(names - {"", "..", "."})


def defined_at(function: object) -> Line | None:
    """Return the path and line where a function of the user's is defined; None of any other."""
    code = getattr(function, "__code__", None)
    path = user_file(code.co_filename) if code else None
    return (path, code.co_firstlineno) if code and path else None


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those around it, the innermost first.

    A fork that multiprocessing made has the frames of what forked around its own: they do not run there.
    """
    while frame is not None:
        yield frame
        code = frame.f_code
        if code.co_name == FORKED[0] and code.co_filename.endswith(FORKED[1]):
            return
        frame = frame.f_back


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's at or above this one, or None."""
    while frame is not None and user_file(frame.f_code.co_filename) is None:  # each step asks
        frame = frame.f_back
    return frame


def user_line(frame: FrameType | None) -> Line | None:
    """Return the path and line of the innermost user frame at or above this one, or None."""
    frame = user_frame(frame)
    path = user_file(frame.f_code.co_filename) if frame is not None else None
    return (path, line_number(frame)) if frame is not None and path is not None else None


def instructions(frame: FrameType | None) -> Instructions:
    """Return the code and the instruction of each frame of a stack, which tell it from others.

    Code stands as its id: to hash or compare it takes as long as reading its lines.
    """
    way: list[int] = []
    while frame is not None:
        way += (id(frame.f_code), frame.f_lasti)
        frame = frame.f_back
    return tuple(way)


def line_number(frame: FrameType) -> int:
    """Return the line that a frame is at; of an instruction that has none, the line of the one before it.

    The jump back to the head of a loop often has no line, and is where Python lets other threads run.
    """
    number: int | None = frame.f_lineno  # None since Python 3.10
    if number is not None:
        return number
    code = frame.f_code
    before = [line for start, _, line in code.co_lines() if line and start <= frame.f_lasti]
    return before[-1] if before else code.co_firstlineno


def here() -> Line | None:
    """Return the user's line that led to the caller."""
    return user_line(sys._getframe(1))


def called_here() -> str:
    """Return the name of the function that the user's line calls, on the way to the caller; "" if none."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        name, frame = frame.f_code.co_name, frame.f_back
    return name if frame is not None else ""


def way_here() -> Way:
    """Return all places of the user's on the stack: two calls of one helper differ in them."""
    return way_of(sys._getframe(1))


def way_of(frame: FrameType | None) -> Way:
    """Return all places of the user's at or above a frame, which may be another thread's.

    Places are instructions, for `train, valid = make(9), make(1)` is a single line.
    """
    places, known = [], _known
    while frame is not None:
        name = frame.f_code.co_filename
        path = known[name] if name in known else user_file(name)  # each step walks its whole stack
        if path is not None:
            places.append((path, frame.f_code.co_firstlineno, frame.f_lasti))
        frame = frame.f_back
    return tuple(places)


# Modules that call the user's Python for input: of tf.data's generators and py_functions, of Keras' datasets.
INPUT_MODULES = re.compile(r"\.(script_ops|data_adapters?|data_utils)(\.|$)")
# The flag of functions that are defined within others, such as those that decorators return: CO_NESTED.
NESTED = 0x10


# `typing` takes milliseconds to import, in each process.
FIELDS = collections.namedtuple("FIELDS", "line caller looped calls runs entry")  # noqa: PYI024


class Stack(FIELDS):
    """What a stack shows a user.

    `line` is their innermost one, `caller` the one that called its function; `looped` is the line in the function
    that holds the loop. `calls` is the function of others that the innermost line calls, `runs` the innermost one
    of others; `entry` is that of TensorFlow or Keras that has the user's make input.
    """

    __slots__ = ()

    @classmethod
    def of(cls, frame: FrameType | None, code: CodeType | None) -> Stack:
        """Read a stack from its innermost frame outwards; `code` is the function that holds the loop."""
        line = caller = looped = calls = runs = entry = None
        for at in outward(frame):
            inner = at.f_code
            path = user_file(inner.co_filename)
            if path is not None:
                if line is None:
                    line = path, line_number(at)
                elif caller is None:
                    caller = path, line_number(at)
            elif line is None:
                if not (inner.co_flags & NESTED or inner.co_filename.startswith(OURS)):  # else a wrapper
                    calls = function_of(at)
                    runs = runs or calls
            elif entry is None and INPUT_MODULES.search(function_of(at)[0]):
                entry = function_of(at)
            if inner is code:
                looped = line_number(at)
        return cls(line, caller, looped, calls, runs, entry)


def function_of(frame: FrameType) -> Function:
    """Return the module and the name of the function that a frame runs."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and later
    return str(frame.f_globals.get("__name__", "")), name


def public_name(function: Function | None) -> str | None:
    """Return 'numpy.histogram' for a function that its package offers under its own name, else the full name.

    Functions of TensorFlow know their public name: 'tensorflow.random.uniform'.
    """
    if function is None:
        return None
    module, name = function
    package = module.partition(".")[0]
    found: Foreign = getattr(sys.modules.get(module), "__dict__", {}).get(name)
    while package == "tensorflow" and found is not None:
        exported: Sequence[str] = getattr(found, "_tf_api_names", None) or ()
        if exported:
            return f"{package}.{exported[0]}"
        found = getattr(found, "__wrapped__", None)  # within its decorators
    offered = getattr(sys.modules.get(package), "__dict__", {}).get(name)
    return f"{package if callable(offered) else module}.{name}"


# Where Keras 3 and Keras 2 call a layer.
MOST_CALLERS = 8  # Of the user's lines that lead to a graph operation: deeper ones are of recursion
LAYER_CALL = re.compile(r"layers[\\/]layer\.py$|engine[\\/]base_layer\.py$")


@cache
def calls_layers(file: str) -> bool:
    """Return whether Keras calls layers in a file: a large model has a million frames in a hundred files."""
    return LAYER_CALL.search(file) is not None


def traced_line(trace: Traceback | None) -> tuple[tuple[Line, ...], bool, Sequence[TracedFrame]]:
    """Return the user's lines that lead to a graph operation, whether the first calls no Keras layer, and how.

    A line that calls a layer did not choose the operation: the line that made the layer did. The innermost line is
    the first; each other one calls the function of the line before. The last result are the frames of others that
    the first line calls, the innermost last.
    """
    if trace is None:
        return (), False, ()
    direct = True
    # Six times faster where TensorFlow leaves out its own frames itself.
    frames = list(trace.get_user_frames() if hasattr(trace, "get_user_frames") else trace)
    for at in range(len(frames) - 1, -1, -1):
        file = frames[at].filename
        path = user_file(file)
        if path is not None:
            return ((path, frames[at].lineno), *_callers(frames[: at + 1])), direct, frames[at + 1 :]
        direct = direct and not calls_layers(file)
    return (), False, frames


def _callers(frames: Sequence[TracedFrame]) -> tuple[Line, ...]:
    """Return the user's lines that call the function of the innermost frame, and those that call theirs.

    AutoGraph makes functions of the bodies of loops and branches: their frames have the name of the user's
    function, whose own frame around them is no caller. Of a function that calls itself it is the first caller.
    """
    found: list[Line] = []
    callee: tuple[str, str] | None = None
    for frame in reversed(frames):
        path = user_file(frame.filename)
        if path is None:
            continue
        if callee is not None and callee != (path, frame.name):
            found.append((path, frame.lineno))
        callee = path, frame.name
    return tuple(found[:MOST_CALLERS])


def callbacks_in(frame: FrameType | None) -> Iterator[str]:
    """Yield 'Class.on_something' of each Keras callback that runs in a stack, the innermost first."""
    for at in outward(frame):
        name = at.f_code.co_name
        if name.startswith("on_"):
            kind = type(at.f_locals.get("self"))
            bases = [base.__name__ for base in kind.__mro__]
            if "Callback" in bases and kind.__name__ != "CallbackList":
                yield f"{kind.__name__}.{name}"
