"""What grows in a run: memory, graphs, open files, live objects. Cheap counters only."""

from __future__ import annotations

import gc
import itertools
import sys
from collections import _count_elements  # type: ignore[attr-defined]  # what Counter uses

from ..process.kept import os, time
from .waiting import children, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..process.declared import Foreign
    from .clock import CallClock

PAGE = os.sysconf("SC_PAGE_SIZE")

# Share of the run that counting live objects may take: they are counted by type at the doubled time each.
SHARE = 0.002
SETTLED_S = 15.0  # Before that a program imports and builds, and its objects say nothing
GREW = 1.05  # Times Python's memory blocks from which live objects are worth counting, by type

MOST_TYPES = 40

# What counting takes for each block of Python's memory, until it has been done: measured 30 to 80 ns.
OBJECT_S = 1e-7
# A counter is read again after so many times its own CPU time, 0.02 % of the run: the heap may be of many GB, and
# the files many thousands.
PACE = 5000

TENSORFLOW = "tensorflow.python.eager.context"


class Counters:
    """Reads the counters, and counts live objects where Python's memory grows."""

    def __init__(self, clock: CallClock) -> None:
        self.clock = clock
        self.paced = {
            "rss": Paced(lambda: _pages(1)),
            "data": Paced(lambda: _pages(5)),
            "device": Paced(_device),
            "blocks": Paced(sys.getallocatedblocks),
            "files": Paced(lambda: len(os.listdir("/proc/self/fd"))),
            "children": Paced(children),
        }
        # Of Python's allocator, when the objects were last counted or the program settled:
        self.blocks = 0
        self.spent = 0.0  # s for counting objects
        self.each: float | None = None  # s that counting took the last time
        self.counted = 0

    def read(self, since: float = 0.0) -> dict[str, int]:
        """Return what was read last, as far as that was after a moment (s on the monotonic clock)."""
        now = time.perf_counter()
        found: dict[str, int | None] = {"graph": self.clock.graph, "functions": self.clock.functions}
        for name, counter in self.paced.items():
            found[name] = counter.read(now) if counter.due <= now or counter.at >= since else None
        return {name: value for name, value in found.items() if value is not None}

    def census(self, elapsed_s: float, *, last: bool = False) -> Mapping[str, int] | None:
        """Return the number of live objects of the most frequent types, where it is time to count them."""
        if elapsed_s < SETTLED_S or (last and not self.counted):
            return None
        blocks = self.paced["blocks"].read(time.perf_counter()) or 0
        self.blocks = self.blocks or blocks
        each = OBJECT_S * blocks if self.each is None else self.each
        affordable = self.spent + each <= SHARE * elapsed_s
        if not last and not (affordable and blocks > GREW * self.blocks):
            return None
        began = time.perf_counter()
        types = live_types()
        self.each = time.perf_counter() - began
        self.spent += self.each
        self.blocks, self.counted = blocks, self.counted + 1
        return named(types)


class Paced:
    """A counter that takes a part of the run at most, however long it takes to read."""

    def __init__(self, counter: Callable[[], int | None]) -> None:
        self.counter: Callable[[], int | None] | None = counter
        self.value: int | None = None
        self.at = self.due = 0.0

    def read(self, now: float) -> int | None:
        """Return what it shows, or showed last (s on the monotonic clock); one that fails is asked no more."""
        if now < self.due or self.counter is None:
            return self.value
        began = time.thread_time()
        try:
            self.value = self.counter()
        except Exception:  # where a device does not count, or a system has no such files
            self.value = self.counter = None
        self.at, self.due = now, now + PACE * (time.thread_time() - began)
        return self.value


def live_types() -> dict[type, int]:
    """Count the live objects by type, in one call of C.

    No other thread may run while we hold them: a tuple that it is filling must have no other owner, or
    Python raises a SystemError there.
    """
    types: dict[type, int] = {}
    every = itertools.chain.from_iterable(map(gc.get_objects, (None,)))
    _count_elements(types, map(type, every))
    return types


def named(types: Mapping[type, int]) -> dict[str, int]:
    """Return the most frequent types by their names."""
    named: dict[str, int] = {}
    for kind in sorted(types, key=types.__getitem__, reverse=True)[:MOST_TYPES]:
        name = f"{kind.__module__}.{kind.__qualname__}"
        named[name] = named.get(name, 0) + types[kind]
    return named


def _pages(column: int) -> int:
    """Return the resident memory of this process (1), or all that it may write (5), in bytes."""
    return int(told("/proc/self/statm").split()[column]) * PAGE


def _device() -> int | None:
    """Return the memory in use on the fullest GPU, in bytes, once TensorFlow has started."""
    module: Foreign = sys.modules.get(TENSORFLOW)
    context = getattr(module, "_context", None)
    if context is None or not getattr(context, "_initialized", False):
        return None
    used = []
    for device in context.list_logical_devices("GPU"):
        number = device.name.rpartition(":")[2]
        used.append(int(context.get_memory_info(f"GPU:{number}")["current"]))
    return max(used, default=None)
