"""The loops in a function's bytecode: whether a frame is in the innermost one around a call that trains."""

from __future__ import annotations

import collections
import dis
import functools

from ..process.stack import line_number, outward, user_file, user_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    # The instructions of a loop: from an offset in bytes to another one, which is no part of it.
    Loop = tuple[tuple[int, int], ...]

JUMPS = frozenset(dis.hasjrel + dis.hasjabs)

# Instructions that the next one in a function's code never follows.
ENDS = frozenset(
    (
        *("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"),
        *("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"),
    )
)

# Instructions between one that makes the iterator of a loop and the loop: of `for n, x in enumerate(data)`.
ITERATES = frozenset(
    ("GET_ITER", "CALL", "CALL_KW", "CALL_FUNCTION", "CALL_METHOD", "PRECALL", "CACHE", "EXTENDED_ARG")
)
WAITS = "JUMP_BACKWARD_NO_INTERRUPT"  # How `await` and `yield from` go round: no loop of the user's


def loops(code: CodeType) -> list[Loop]:
    """Return the loops of a function: what leads from where a jump goes back to, to such a jump.

    Where exceptions are handled stands at the end of a function's code, behind what follows the loop.
    """
    ends: dict[int, int] = {}  # of each instruction
    before: dict[int, list[int]] = {}  # the instructions after which one may come
    heads: dict[int, list[int]] = {}  # where jumps lead back to, and those jumps
    last = None
    bytecode = dis.Bytecode(code)
    for instruction in bytecode:
        offset, target = instruction.offset, instruction.argval
        if last is not None:
            ends[last.offset] = offset
            if last.opname not in ENDS:
                before.setdefault(offset, []).append(last.offset)
        if instruction.opcode in JUMPS and isinstance(target, int):
            before.setdefault(target, []).append(offset)
            if target <= offset and instruction.opname != WAITS:
                heads.setdefault(target, []).append(offset)
        last = instruction
    if last is not None:
        ends[last.offset] = len(code.co_code)
    for handled in getattr(bytecode, "exception_entries", ()):  # from Python 3.11 on
        raising = (offset for offset in ends if handled.start <= offset < handled.end)
        before.setdefault(handled.target, []).extend(raising)
    return [_joined(_leading(head, jumps, before), ends) for head, jumps in heads.items()]


def _leading(head: int, jumps: list[int], before: dict[int, list[int]]) -> set[int]:
    """Return the instructions from which a jump is reached that leads to the head, without passing that."""
    found, waiting = {head}, list(jumps)
    while waiting:
        offset = waiting.pop()
        if offset not in found:
            found.add(offset)
            waiting += before.get(offset, ())
    return found


def _joined(offsets: set[int], ends: dict[int, int]) -> Loop:
    """Return instructions as ranges: a frame may be at any byte of one."""
    found: list[tuple[int, int]] = []
    for offset in sorted(offsets):
        if found and found[-1][1] == offset:
            found[-1] = found[-1][0], ends[offset]
        else:
            found.append((offset, ends[offset]))
    return tuple(found)


def holds(loop: Loop, instruction: int) -> bool:
    """Say whether an instruction is one of a loop's."""
    return any(first <= instruction < end for first, end in loop)


def around(code: CodeType, instruction: int) -> list[Loop]:
    """Return the loops of a function that hold an instruction, the smallest first."""
    held = (loop for loop in _loops(code) if holds(loop, instruction))
    return sorted(held, key=lambda loop: sum(end - first for first, end in loop))


@functools.lru_cache(maxsize=2000)
def _loops(code: CodeType) -> tuple[Loop, ...]:
    return tuple(loops(code))


def iterated_by_loop_of(code: CodeType, instruction: int, line: int) -> bool:
    """Say whether an instruction makes the iterator of the loop that holds a line, itself or within `enumerate`."""
    later = [loop for loop in _loops(code) if loop[0][0] > instruction]
    first = min(later, default=None)
    if first is None:
        return False
    between = (each.opname for each in dis.get_instructions(code) if instruction < each.offset < first[0][0])
    starts = dis.findlinestarts(code)
    return all(name in ITERATES for name in between) and any(
        number == line and holds(first, offset) for offset, number in starts
    )


def in_a_loop(frame: FrameType) -> bool:
    """Say whether a frame is in a loop of its function."""
    return any(holds(loop, frame.f_lasti) for loop in _loops(frame.f_code))


def loops_around(frame: FrameType | None, training: CalledLoops) -> int:
    """Return how many loops of the user's functions hold a stack, below those around training."""
    count = 0
    for at in outward(frame):
        if user_file(at.f_code.co_filename) is not None:
            trains = [first for ((first, _), *_) in training.loops.get(id(at.f_code), ())]
            found = around(at.f_code, at.f_lasti)
            own = [loop for loop in found if not any(holds(loop, first) for first in trains)]
            count += len(own)
            if len(own) < len(found):
                break
    return count


# Packages that call a function of the user's again and again, for each row or element.
APPLIES = ("pandas.", "numpy.", "concurrent.futures.")


def repeats(frame: FrameType | None) -> bool | None:
    """Say whether the user's innermost line is reached again and again; None is unknown.

    It is where a loop of its function or of its caller holds it, or a library calls that function for each row.
    """
    frame = user_frame(frame)
    if frame is None:
        return None
    if in_a_loop(frame):
        return True
    between = False
    for caller in outward(frame.f_back):
        if user_file(caller.f_code.co_filename) is not None:
            return True if in_a_loop(caller) else None if between else False
        if str(caller.f_globals.get("__name__", "")).startswith(APPLIES):
            return True
        between = True
    return False


class KnownCalls:
    """Calls that the user's lines make, each once: by a code and an instruction."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: set[tuple[int, int]] = set()
        self.alive: list[CodeType] = []  # so that no other code gets the id of one of these

    def new(self, frame: FrameType | None) -> FrameType | None:
        """Return the user's frame that makes a call, the first time that it does; None afterwards."""
        users = user_frame(frame)
        if users is None or len(self.known) >= self.most:
            return None
        key = id(users.f_code), users.f_lasti
        if key in self.known:
            return None
        self.known.add(key)
        self.alive.append(users.f_code)
        return users


class CalledLoops(KnownCalls):
    """The innermost loops of the user's around certain calls, by the function that holds the loop."""

    MOST = 200

    def __init__(self) -> None:
        super().__init__(self.MOST)
        self.loops: dict[int, list[Loop]] = {}  # by the id of a function's code
        self.functions: set[int] = set()  # the ids of what such a loop calls, down to the call

    def add(self, frame: FrameType | None) -> bool:
        """Learn the loop around a call that the frame is making; say whether one is new."""
        below = None
        for at in outward(self.new(frame)):
            code = at.f_code
            if user_file(code.co_filename) is None:
                continue
            self.alive.append(code)
            loops = around(code, at.f_lasti)
            if loops:
                self.loops.setdefault(id(code), []).append(loops[0])
                self.functions.update([id(below)] if below else ())
                return True
            below = code
        return False

    def called(self, frame: FrameType | None) -> tuple[CodeType, FrameType] | None:
        """Return the user's function that a loop calls and that makes such a call, and the frame of the loop.

        None where a stack is in no such function: the loop's own line runs, or another function that it calls.
        """
        below = None
        for at in outward(frame):
            if any(holds(loop, at.f_lasti) for loop in self.loops.get(id(at.f_code), ())):
                return (below, at) if below and id(below) in self.functions else None
            if user_file(at.f_code.co_filename) is not None:
                below = at.f_code
        return None

    def hold(self, frame: FrameType | None) -> bool:
        """Say whether a stack is in one of the loops."""
        return any(holds(loop, at.f_lasti) for at in outward(frame) for loop in self.loops.get(id(at.f_code), ()))


# Functions that are expressions: they hold no statements.
WITHIN = frozenset(("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))


class TrainingCalls(KnownCalls):
    """Calls that train, with the user's frames around them: what their source says is read afterwards."""

    MOST = 50  # More have the same loops, or are made by a library for each model
    MOST_FRAMES = 100

    def __init__(self) -> None:
        super().__init__(self.MOST)
        self.told: collections.deque[dict[str, object]] = collections.deque()  # for the log
        self.codes: set[CodeType] = set()  # of the user's functions around them

    def add(self, frame: FrameType | None, *, fits: bool = False) -> None:
        """Note a call that the frame makes, unless its line is known."""
        users = self.new(frame)
        if users is None:
            return
        frames: list[tuple[str, int, str]] = []
        for at in outward(users):
            path, name = user_file(at.f_code.co_filename), at.f_code.co_name
            if path is not None:
                self.codes.add(at.f_code)
            if path is not None and name not in WITHIN:
                frames.append((path, line_number(at), name))
        told = {"kind": "trains", "frames": frames[: self.MOST_FRAMES], "fits": fits, "direct": users is frame}
        self.told.append(told)
