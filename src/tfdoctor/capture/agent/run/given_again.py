"""What sampled calls are given: one item each, or what an earlier one was given, so that they compute it again.

Samples show single calls, and their arguments stand in the frame. Those of two are alike where all are numbers,
texts, arrays or tables with the same content, as far as it is compared. Of a call with any other one, such as a
model, nothing is known. Two samples are of different calls where a step came between, or where one between them
shows that the first call was over; else they count as one. Of objects that are made, what they are given counts.
A call works on one item where all of its arrays of two dimensions or more have one row.
"""

from __future__ import annotations

import sys
import weakref

from ..process.stack import OURS, outward, user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from types import CodeType, FrameType
    from typing import Any

    Given = tuple[bool | None, bool | None]  # whether a call's arguments are an earlier one's, and are one item

    # The innermost user's code and its instruction, and the code that it calls:
    Call = tuple[CodeType, int, CodeType]

OPTIMIZED = 0x3  # CO_OPTIMIZED and CO_NEWLOCALS: the variables of a function, not those of a module or a class
NESTED = 0x10  # CO_NESTED: as decorators' wrappers are
# CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR: one call of such a function is under way for many steps.
RESUMED = 0x20 | 0x80 | 0x200
PLAIN = (type(None), bool, int, float, complex, str, bytes)
OWN = frozenset(("locals", "vars", "dir", "eval", "exec"))
MOST_ITEMS = 64  # Of a dictionary that is compared, or arrays of a table
MOST_COMPARED = 2_000  # Elements of all arguments of a call: 1 ms
OURS_ALONE = 3  # References to a frame's dictionary: the frame's, our variable, and that of `getrefcount`
SEEDS = frozenset(("random_state", "seed", "rng"))
LOOKS = 32  # Elements of an array or a list that are compared, evenly spaced
DEEPEST = 4
LONGEST = 100_000  # Characters of a text that is compared: Python reads all of them once
MOST_CALLS, MOST_GIVEN = 500, 200  # Places, and different arguments of each, that are remembered
MOST_HELD = 20_000  # Objects that were told apart by themselves
# Objects that are told apart by themselves alone: few programs change them.
EAGER = "tensorflow.python.framework.ops.EagerTensor"
ARRAYS = frozenset(("numpy.ndarray", EAGER))
FEW_ITEMS = 16  # Of a list or a dictionary in which arrays are looked for
HELD = ("pandas.", "scipy.sparse", EAGER, "builtins.function", "builtins.type")
STARS = 0x4, 0x8  # CO_VARARGS, CO_VARKEYWORDS


class Unknown(Exception):  # noqa: N818 - it is an answer, not a fault
    """What an argument is cannot be compared."""


class GivenAgain:
    """The arguments that sampled calls had, by where they are made."""

    def __init__(self) -> None:
        self.calls: dict[Call, set[int]] = {}
        self.last: dict[Call, int] = {}  # the step in which a call was seen last
        self.open: set[Call] = set()  # calls that every sample has shown since
        self.held: dict[int, weakref.ref[object]] = {}
        self.left = 0  # elements of the present call that are still compared

    def seen(self, frame: FrameType, step: int, trains: Container[CodeType]) -> Given:
        """Say whether a call that no sample showed before has the arguments of an earlier one, and one item.

        None is unknown. ``trains`` are functions that are under way for many steps.
        """
        found = called(frame)
        if self.open:
            under_way = {(at.f_code, at.f_lasti) for at in outward(frame)}
            self.open = {call for call in self.open if call[:2] in under_way}
        if found is None or found[1].f_code in trains:
            return None, None
        call, made = found
        code = made.f_code
        # Of a function of the user's nothing says what else it reads, such as random numbers: a step has to come.
        same = self.last.get(call, -1) == step and (call in self.open or user_file(code.co_filename) is not None)
        self.open.add(call)
        if len(self.last) < MOST_CALLS or call in self.last:
            self.last[call] = step
        stars = sum(code.co_flags & star > 0 for star in STARS)
        first = code.co_name == "__init__"  # the object itself, which is new
        names = code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount + stars]
        values: dict[str, object] = made.f_locals
        try:
            given = {name: values[name] for name in names}
            rows = {*_rows(given)}
            draws = any(name in SEEDS and given[name] is None for name in given)  # other numbers each time
            compared = given and not (same or draws)
            return self._repeats(call, given) if compared else None, rows == {1} if rows else None
        except Exception:  # an argument is gone, or changes while it is read
            return None, None
        finally:
            # Before Python 3.13 the frame keeps this copy: it would keep alive what the function lets go. A program
            # that asked for the frame's variables itself holds the same dictionary.
            if type(values) is dict and sys.getrefcount(values) <= OURS_ALONE:
                values.clear()

    def _repeats(self, call: Call, values: dict[str, object]) -> bool | None:
        """Say whether a call has the arguments of an earlier one; None where one of them is not compared."""
        self.left = MOST_COMPARED
        try:
            given = hash(tuple((name, self._content(value)) for name, value in values.items()))
        except Exception:
            return None
        known = self.calls.setdefault(call, set()) if len(self.calls) < MOST_CALLS else self.calls.get(call)
        if known is None:
            return None
        repeats = given in known
        if len(known) < MOST_GIVEN:
            known.add(given)
        return repeats

    def _content(self, value: Any, depth: int = 0) -> object:  # noqa: ANN401  # any argument of the user's
        kind, self.left = type(value), self.left - 1
        if self.left < 0:
            raise Unknown
        if kind in PLAIN:
            return kind, self._short(value)
        if depth < DEEPEST and kind in (tuple, list):
            some = value[:: max(1, len(value) // LOOKS)]
            return kind, len(value), tuple(self._content(one, depth + 1) for one in some)
        if depth < DEEPEST and kind is dict and len(value) <= MOST_ITEMS:
            return kind, tuple((self._content(k, depth + 1), self._content(v, depth + 1)) for k, v in value.items())
        return self._of_library(value, f"{kind.__module__}.{kind.__qualname__}", depth)

    def _of_library(self, value: Any, name: str, depth: int) -> object:  # noqa: ANN401  # same
        kind = type(value)
        if name == "numpy.ndarray":
            return self._array(value)
        if name == "builtins.module" or hasattr(kind, "_member_map_"):
            return id(value)  # of which there is one, as of an enumeration's members
        if name.startswith("numpy.") and hasattr(value, "dtype") and hasattr(value, "item"):  # one number
            return name, value.item()
        if name.startswith("pandas.") and hasattr(kind, "__dict__"):
            return name, self._table(vars(value), depth)
        if name.startswith((*HELD, "numpy.dtypes")):
            return self._held(value)
        raise Unknown

    def _table(self, parts: dict[str, Any], depth: int) -> object:
        """Return the content of a table, or of the groups of one, whose parts these are."""
        if "obj" in parts:
            return self._content(parts["obj"], depth + 1), self._content(parts.get("keys"), depth + 1)
        blocks = parts["_mgr"].blocks
        return len(blocks), tuple(self._content(block.values, depth + 1) for block in blocks[:MOST_ITEMS])

    @staticmethod
    def _short(value: object) -> object:
        if not isinstance(value, (str, bytes)):
            return value
        if len(value) > LONGEST:
            raise Unknown
        return hash(value)

    def _array(self, value: Any) -> object:  # noqa: ANN401  # an array of NumPy
        if value.dtype.kind not in "biufcSU":
            return self._held(value)
        each = max(1, value.size // LOOKS)
        items = tuple(value.item(at) for at in range(0, value.size, each))
        # Equal elements are of no content that could be told from another's.
        own = self._held(value) if len(set(items)) <= 1 else None
        return value.shape, str(value.dtype), items, own

    def _held(self, value: object) -> object:
        known = self.held.get(id(value))
        if known is None or known() is not value:
            if len(self.held) >= MOST_HELD:
                raise Unknown
            try:
                known = self.held[id(value)] = weakref.ref(value)
            except TypeError:
                raise Unknown from None
        return id(known)


def _rows(value: Any, depth: int = 0) -> Iterator[int]:  # noqa: ANN401  # any argument of the user's
    """Yield the rows of arrays that a call is given, alone or in short lists and dictionaries; not of vectors."""
    kind = type(value)
    if kind in (dict, tuple, list) and depth < DEEPEST and 0 < len(value) <= FEW_ITEMS:
        for one in value.values() if kind is dict else value:
            yield from _rows(one, depth + 1)
    elif f"{kind.__module__}.{kind.__qualname__}" in ARRAYS and len(value.shape) > 1:
        yield int(value.shape[0])


def called(frame: FrameType) -> tuple[Call, FrameType] | None:
    """Return the call that the user's innermost line makes, and its frame; None where none can be read.

    Where it calls no function that is written in Python, that is the call of the user's function itself. A function
    that may hold the dictionary of its variables is left out: to read them changes it.
    """
    made: FrameType | None = None
    for at in outward(frame):
        code, users = at.f_code, user_file(at.f_code.co_filename) is not None
        plain = code.co_flags & (OPTIMIZED | RESUMED) == OPTIMIZED
        plain = plain and at.f_trace is None and OWN.isdisjoint(code.co_names)
        if plain and not (users and made) and not (code.co_flags & NESTED or code.co_filename.startswith(OURS)):
            made = at
        if users:
            return ((code, at.f_lasti, made.f_code), made) if made else None
    return None
