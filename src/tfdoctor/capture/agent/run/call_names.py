"""What a caller's bytecode says about a call: the plain names that it passes, and the lines that assign them."""

from __future__ import annotations

import dis
import functools
import re

from .loops import JUMPS, around, holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    # A verb, the name that it is about, and how much the stack grows; None: jumps lead here, or from here.
    Part = tuple[str, "str | None", "int | None"]

LOAD, STORE = "LOAD", "STORE"

# Instructions that read or assign one name.
PLAIN = frozenset(
    f"{verb}_{kind}"
    for verb in (LOAD, STORE)
    for kind in ("FAST", "FAST_BORROW", "FAST_CHECK", "NAME", "GLOBAL", "DEREF")
)

# From Python 3.13 on, one may do both for two names.
PAIR = re.compile(r"(LOAD|STORE)_FAST(?:_BORROW)?_(LOAD|STORE)_FAST(?:_BORROW)?")
# Instructions between the arguments of a call and the call.
SKIPPED = frozenset(("PRECALL", "KW_NAMES", "CACHE", "EXTENDED_ARG"))
# Calls that take the names of their keyword arguments from the stack.
NAMED = frozenset(("CALL_KW", "CALL_FUNCTION_KW"))
UNPACKS = "CALL_FUNCTION_EX"  # A call with `*` or `**`, whose arguments the bytecode does not show


@functools.lru_cache(maxsize=500)
def passed(code: CodeType, at: int, count: int) -> tuple[str | None, ...]:
    """Return the plain names that are the last arguments of the call at an instruction; None for any other."""
    before = [each for each in dis.get_instructions(code) if each.offset <= at]
    ends = before[-1:]
    if before and before.pop().opname in NAMED:
        ends += before[-1:]
        del before[-1:]
    while before and before[-1].opname in SKIPPED:
        ends.append(before.pop())
    if any(each.opname == UNPACKS or each.is_jump_target for each in ends):
        return (None,) * count
    parts = [part for instruction in before for part in _parts(instruction)]
    return tuple(reversed([_argument(parts) for _ in range(count)]))


def _argument(parts: list[Part]) -> str | None:
    """Take the instructions that push the last value of the stack; return the name that it is.

    Behind a jump nothing is known any more.
    """
    pushed, taken, name = 0, 0, None
    while parts and pushed < 1:
        verb, name, grows = parts[-1]
        if grows is None:
            return None
        parts.pop()
        pushed, taken = pushed + grows, taken + 1
        if verb != LOAD:
            name = None
    return name if taken == 1 else None


def _parts(instruction: dis.Instruction) -> Iterator[Part]:
    """Yield what an instruction does to names, in order."""
    if instruction.opcode in JUMPS or instruction.is_jump_target:
        yield "", None, None
    both = PAIR.fullmatch(instruction.opname)
    if both is not None:
        for verb, name in zip(both.groups(), instruction.argval):  # noqa: B905 - Python 3.9
            yield verb, name, 1 if verb == LOAD else -1
    elif instruction.opname in PLAIN:
        verb, _, _ = instruction.opname.partition("_")
        yield verb, instruction.argval, dis.stack_effect(instruction.opcode, instruction.arg)
    elif instruction.opcode not in JUMPS:
        yield "", None, dis.stack_effect(instruction.opcode, instruction.arg)


@functools.lru_cache(maxsize=500)
def assigned(code: CodeType, at: int, name: str) -> int | None:
    """Return the line that last assigned a name before an instruction, as the function's loops repeat it.

    That is within the innermost loop around the instruction that assigns it at all: above, or else below it.
    """
    stores = _stores(code, name)
    for loop in around(code, at):
        within = [(offset, line) for offset, line in stores if holds(loop, offset)]
        if within:
            return _last(within, at) or within[-1][1]
    return _last(stores, at)


def _last(stores: list[tuple[int, int]], at: int) -> int | None:
    """Return the line of the last one above an instruction."""
    return next((line for offset, line in reversed(stores) if offset < at), None)


def _stores(code: CodeType, name: str) -> list[tuple[int, int]]:
    """Return the instructions that assign a name, with their lines."""
    starts, line = dict(dis.findlinestarts(code)), 0
    found = []
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        if any(verb == STORE and name == of for verb, of, _ in _parts(instruction)):
            found.append((instruction.offset, line))
    return found
