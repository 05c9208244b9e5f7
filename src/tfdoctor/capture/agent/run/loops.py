"""The loops in a function's bytecode: whether a frame is in the innermost one around a call that trains."""

from __future__ import annotations

import dis
import functools

from ..stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    Range = tuple[int, int]  # the first and the last instruction of a loop, offsets in bytes

JUMPS = frozenset(dis.hasjrel + dis.hasjabs)


def ranges(code: CodeType) -> list[Range]:
    """Return the loops of a function: from where a jump leads back to, to the last jump that leads there."""
    ends: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        target = instruction.argval
        if instruction.opcode in JUMPS and isinstance(target, int) and target <= instruction.offset:
            ends[target] = max(ends.get(target, 0), instruction.offset)
    return list(ends.items())


def innermost(code: CodeType, instruction: int) -> Range | None:
    """Return the smallest loop of a function that holds an instruction."""
    around = [one for one in _loops(code) if one[0] <= instruction <= one[1]]
    return min(around, key=lambda one: one[1] - one[0], default=None)


@functools.lru_cache(maxsize=2000)
def _loops(code: CodeType) -> tuple[Range, ...]:
    return tuple(ranges(code))


def in_a_loop(frame: FrameType) -> bool:
    """Say whether a frame is in a loop of its function."""
    return any(first <= frame.f_lasti <= last for first, last in _loops(frame.f_code))


APPLIES = ("pandas.", "numpy.", "concurrent.futures.")
"""Packages that call a function of the user's again and again, for each row or element."""


def repeats(frame: FrameType | None) -> bool | None:
    """Say whether the user's innermost line is reached again and again; None is unknown.

    It is where a loop of its function or of its caller holds it, or a library calls that function for each row.
    """
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    if frame is None:
        return None
    if in_a_loop(frame):
        return True
    caller, between = frame.f_back, False
    while caller is not None and user_file(caller.f_code.co_filename) is None:
        if str(caller.f_globals.get("__name__", "")).startswith(APPLIES):
            return True
        caller, between = caller.f_back, True
    if caller is None:
        return False
    return True if in_a_loop(caller) else None if between else False


class CalledLoops:
    """The innermost loops of the user's around certain calls, by the function that holds the loop."""

    MOST = 200

    def __init__(self) -> None:
        self.known: set[tuple[int, int]] = (
            set()
        )  # calls whose loop is known: a code and an instruction
        self.loops: dict[int, list[Range]] = {}  # by the id of a function's code
        self.alive: list[CodeType] = []  # so that no other code gets the id of one of these

    def add(self, frame: FrameType | None) -> bool:
        """Learn the loop around a call that the frame is making; say whether one is new."""
        while frame is not None and user_file(frame.f_code.co_filename) is None:
            frame = frame.f_back
        if frame is None or len(self.known) >= self.MOST:
            return False
        key = id(frame.f_code), frame.f_lasti
        if key in self.known:
            return False
        self.known.add(key)
        self.alive.append(frame.f_code)
        while frame is not None:
            code = frame.f_code
            loop = innermost(code, frame.f_lasti) if user_file(code.co_filename) else None
            if loop is not None:
                self.loops.setdefault(id(code), []).append(loop)
                self.alive.append(code)
                return True
            frame = frame.f_back
        return False

    def hold(self, frame: FrameType | None) -> bool:
        """Say whether a stack is in one of the loops."""
        loops = self.loops
        while frame is not None:
            of_code = loops.get(id(frame.f_code))
            if of_code is not None:
                at = frame.f_lasti
                if any(first <= at <= last for first, last in of_code):
                    return True
            frame = frame.f_back
        return False
