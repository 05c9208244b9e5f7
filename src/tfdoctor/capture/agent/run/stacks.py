"""Stack samples of the thread that the account follows: what it does, and for how much time each stack stands."""

from __future__ import annotations

import functools
import re

from ..process.all_threads import OtherThreads
from ..process.stack import (
    MOST_CALLERS,
    Stack,
    callbacks_in,
    function_of,
    instructions,
    line_number,
    outward,
    public_name,
    user_file,
    user_frame,
    user_line,
)
from .compiled_calls import compiled_call
from .given_again import GivenAgain
from .kinds import BUILDING, IMPORTING, INPUT, MODEL, OTHER, SAVING, TRACING, WEIGHTS
from .loops import loops_around, repeats
from .switching import SwitchInterval
from .waiting import SLEEP, WAITING, CPUTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from ..process.stack import Instructions, Line
    from .clock import CallClock
    from .given_again import Given

    # Whether in a long step, and whether the process waited for children:
    Times = tuple[bool, bool]
    Counts = dict[int, list[int]]  # by the number of a stack: calls whose arguments are known, those that are so

# Frames of the ways through the program that are remembered, 16 MB at most; to read a way anew takes 0.1 ms.
MOST_FRAMES = 200_000
UNKNOWN_CALL = None, None
MOST_STACKS = 4000  # Stacks that the file tells apart; of later ones the line and the call, and then the call alone


# What the file says of a stack, where that is unknown or left out.
UNKNOWN: dict[str, object] = {
    "at": None, "caller": None, "around": (), "calls": None, "runs": None, "function": "", "callback": "",
    "work": OTHER, "looped": False, "tested": False, "repeats": None, "loops": 0, "step": None, "step_call": None,
}  # fmt: skip
# What is left in it of stacks that share a number with others.
SHORT = ("callback", "work", "looped", "tested")
WITH_LINE = (*SHORT, "at", "function", "repeats", "loops")


class SampledStack:
    """What a stack shows: the user's lines, what they call, the work, and the loops that hold it."""

    __slots__ = ("numbers", "told", "waits")

    def __init__(self, frame: FrameType, clock: CallClock) -> None:
        stack, work = Stack.of(frame, None), work_of(frame)
        users = user_frame(frame) if stack.line else None  # and none of the process that forked
        *_, callback = "", *callbacks_in(frame)  # the outermost: it is what fit was given
        named = ""  # what the line calls, where no frame of the stack says it
        if work == IMPORTING:
            named = imported(frame) or ""
        elif stack.calls is None:
            named = compiled_call(frame)
        looped = clock.training.hold(frame)
        if work == MODEL and clock.trains and not looped and not clock.running:
            clock.testing.add(calls_model(frame))  # a loop that calls the model without training it
        tested, called = clock.testing.hold(frame), clock.training.called(frame) if looped else None
        self.told = {
            **UNKNOWN,
            "at": stack.line,
            "caller": stack.caller,
            "around": lines_around(users),
            "calls": named or public_name(stack.calls),
            "runs": public_name(stack.runs),
            "function": function_of(users)[1] if users is not None else "",
            "callback": callback,
            "work": work,
            "looped": looped,
            "tested": tested,
            "repeats": repeats(frame) if stack.line else None,
            "loops": loops_around(frame, clock.training),
            "step": called and (called[0].co_filename, called[0].co_firstlineno),
            "step_call": called and user_line(called[1]),
        }
        idle = frame.f_code.co_filename.endswith(WAITING) or named == SLEEP
        self.waits = idle and not looped and not tested
        self.numbers: dict[tuple[int, Times], int] = {}  # by the call under way


class Stacks:
    """What samples showed: the stacks that the file does not know yet, and the times of all in the open bucket."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.interval, self.cpu = SwitchInterval(), CPUTimes()
        self.numbers: dict[object, int] = {}  # of what is told
        self.new: list[dict[str, object]] = []
        self.ns: dict[int, int] = {}  # by the number of a stack
        self.samples: dict[int, int] = {}
        self.given = GivenAgain()
        self.again: Counts = {}  # calls with known arguments, and those that had an earlier one's
        self.single: Counts = {}  # calls with arrays, and those with one row of each
        self.forget()

    def forget(self) -> None:
        """The loops have changed: read stacks anew."""
        self.known: dict[Instructions, SampledStack] = {}
        self.frames = 0  # of all that is known
        self.alive: dict[int, CodeType] = {}  # so that no other code gets the id of one of these
        self.loops = self._loops()

    def _loops(self) -> tuple[int, int]:
        clock = self.clock
        return len(clock.training.alive), len(clock.testing.alive)

    def sample(self, now: int, ns: int, late_s: float = 0.0) -> None:
        """See where the thread is at a moment, so late; the sample stands for so many ns."""
        clock = self.clock
        clock.look_after_thread()
        if self.loops != self._loops():
            self.forget()
        seen, given = self._seen(clock.thread)
        if seen is None:
            return
        rests = clock.rests()
        if seen.waits and rests:
            working, given_there = self._seen(self.cpu.working(clock.thread, now))
            if working is not None and working.told["at"] is not None:  # else the line that waits tells more
                seen, given = working, given_there
        self.interval.sampled(imports=seen.told["work"] == IMPORTING, late_s=late_s)
        children = self.cpu.awaits_children(ns, now) and rests
        key = clock.current.number, (clock.in_long_step(now), children)
        number = seen.numbers.get(key)
        if number is None:
            number = seen.numbers[key] = self._number(*key, seen.told)
        self.ns[number] = self.ns.get(number, 0) + ns
        self.samples[number] = self.samples.get(number, 0) + 1
        for counts, is_so in zip((self.again, self.single), given):  # noqa: B905 - Python 3.9
            if is_so is not None:
                known = counts.setdefault(number, [0, 0])
                known[0] += 1
                known[1] += is_so

    def _seen(self, thread: int | None) -> tuple[SampledStack | None, Given]:
        """Return what the stack of a thread shows, and what is known of a call's arguments; None is no thread."""
        with OtherThreads() as frames:
            self.interval.look(frames, self.clock.thread)
            frame = frames.get(thread or 0)
            if frame is None:
                return None, UNKNOWN_CALL
            seen, clock = self._known(frame), self.clock
            if seen.told["at"] is None:
                return seen, UNKNOWN_CALL
            return seen, self.given.seen(frame, clock.stepped, clock.kept.codes)

    def _known(self, frame: FrameType) -> SampledStack:
        """Return what a stack shows, once read: reading all its lines takes longer than all else does."""
        way = instructions(frame)
        known = self.known.get(way)
        if known is None:
            known = SampledStack(frame, self.clock)
            if self.frames >= MOST_FRAMES:
                self.forget()
            self.frames += len(way) // 2
            self.known[way] = known
            self.alive.update((id(at.f_code), at.f_code) for at in outward(frame))
        return known

    def _number(self, call: int, times: Times, told: dict[str, object]) -> int:
        """Return the number of a stack that is new; many share one where there are too many."""
        key = call, times, *told.values()
        if key not in self.numbers and len(self.numbers) >= MOST_STACKS:
            left = WITH_LINE if len(self.numbers) < 2 * MOST_STACKS else SHORT
            told = {**UNKNOWN, **{name: told[name] for name in left}}
            key = call, times, *told.values()
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.numbers)
            said = {"kind": "stack", "id": number, "call": call, **told, "long": times[0], "children": times[1]}
            self.new.append(said)
        return number


def lines_around(frame: FrameType | None) -> tuple[Line, ...]:
    """Return the user's lines that lead to the function of a frame, the innermost first and at most so many."""
    found: list[Line] = []
    for at in outward(frame and frame.f_back):
        path = user_file(at.f_code.co_filename)
        line = None if path is None else (path, line_number(at))
        if line is not None and line not in found[-1:] and len(found) < MOST_CALLERS:  # a recursion is one
            found.append(line)
    return tuple(found)


# What a stack is doing, by the functions of Python, TensorFlow and Keras on it

IMPORT_SYSTEM = "<frozen importlib"  # How the files of Python's import system are called

KERAS = r"^(tf_keras|keras)(\.src)?\."

# Kinds of work, in the order in which they count: modules, and the functions in them; None are all.
WORK = (
    (WEIGHTS, re.compile(KERAS + r"engine\.training_utils$"), frozenset(("handle_partial_sample_weights",))),
    (
        SAVING,
        re.compile(
            KERAS + r"(saving|models|engine)\.|\.checkpoint\.checkpoint(_management)?$|\.saved_model\.save$"
            r"|\.training\.saver$|\.ops\.summary_ops_v2$"
        ),
        frozenset(
            (
                *("save", "save_model", "save_weights", "write", "flush", "save_model_to_hdf5"),
                *("save_weights_only", "_save_state", "save_and_return_nodes"),
            )
        ),
    ),
    (
        INPUT,
        re.compile(
            r"^tensorflow\.python\.data\.|"
            + KERAS
            + r"(trainers\.(data_adapters|epoch_iterator)|engine\.data_adapter"
            r"|utils\.(image_dataset|timeseries|text_dataset))"
        ),
        None,
    ),
    (
        BUILDING,
        re.compile(
            KERAS + r"(layers|models|engine|applications|optimizers|trainers|saving|initializers|metrics|losses"
            r"|ops\.(operation|function))|\.eager\.context$|\.ops\.resource_variable_ops$|\.saved_model\.load"
            r"|\.checkpoint\.checkpoint$|\.framework\.op_def_library$|\.training\.optimizer$|\.ops\.gradients_util$"
        ),
        frozenset(
            (
                *("__init__", "__new__", "build", "add", "add_weight", "symbolic_call"),
                *("compute_output_spec", "_functional_construction_call", "compile"),
                *("clone_model", "load_model", "load_weights", "model_from_json", "from_config"),
                *("set_weights", "ensure_initialized", "restore", "read", "load", "load_partial"),
                *("_apply_op_helper", "minimize", "_GradientsHelper"),
            )
        ),
    ),
    (TRACING, re.compile(r"^tensorflow\.python\.framework\.func_graph$"), None),
    (MODEL, re.compile(KERAS + r"(layers\.layer|engine\.base_layer)$"), frozenset(("__call__",))),
)


# The calls of models and layers.
MODEL_CALLS = next((modules, names) for kind, modules, names in WORK if kind == MODEL)


def calls_model(frame: FrameType | None) -> FrameType | None:
    """Return the frame that calls the outermost model or layer of Keras on a stack; None without one."""
    modules, names = MODEL_CALLS
    outermost = None
    for at in outward(frame):
        if at.f_code.co_name in (names or ()) and modules.search(str(at.f_globals.get("__name__", ""))):
            outermost = at.f_back
    return outermost


def work_of(frame: FrameType | None) -> str:
    """Return what a stack is doing, the innermost frame first."""
    if imported(frame) is not None:
        return IMPORTING
    best = len(WORK)
    for at in outward(frame):
        name = at.f_globals.get("__name__")
        if isinstance(name, str) and not name.startswith("_tfdoctor"):
            best = min(best, _place(name, at.f_code.co_name))
    return WORK[best][0] if best < len(WORK) else OTHER


@functools.lru_cache(maxsize=20_000)
def _place(module: str, function: str) -> int:
    """Return the place of the first kind of work that a function belongs to."""
    for number, (_, modules, functions) in enumerate(WORK):
        if (functions is None or function in functions) and modules.search(module):
            return number
    return len(WORK)


def imported(frame: FrameType | None) -> str | None:
    """Return the module that the user's innermost line imports, "" where unknown; None where it imports none."""
    found: str | None = None
    for at in outward(frame):
        if at.f_code.co_filename.startswith(IMPORT_SYSTEM):
            found = found or ""
            found = str(at.f_locals.get("name", found)) if at.f_code.co_name == "_find_and_load" else found
        elif user_file(at.f_code.co_filename) is not None:
            break
    return found
