"""What grows in a run: memory, graphs, open files, live objects. Cheap counters only."""

from __future__ import annotations

import collections
import gc
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..declared import Foreign
    from .clock import Clock

PAGE = os.sysconf("SC_PAGE_SIZE")

SHARE = 0.002
"""Share of the run that counting live objects may take: they are counted by type at the doubled time each."""

SETTLED_S = 15.0
"""Before that a program imports and builds, and its objects say nothing."""

GREW = 1.05
"""Times Python's memory blocks from which live objects are worth counting, by type."""

MOST_TYPES = 40

TENSORFLOW = "tensorflow.python.eager.context"


class Counters:
    """Reads the counters, and counts live objects where Python's memory grows."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.blocks = (
            0  # of Python's allocator, when the objects were last counted or the program settled
        )
        self.spent = 0.0  # s for counting objects
        self.each = 0.05  # s that counting takes, by the last time
        self.counted = 0

    def read(self) -> dict[str, int]:
        """Return what is known at this moment."""
        found = {
            "rss": _resident(),
            "device": _device(),
            "blocks": sys.getallocatedblocks(),
            "graph": self.clock.graph,
            "functions": self.clock.functions,
            "files": _entries("/proc/self/fd"),
            "children": _children(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def census(self, elapsed_s: float, *, last: bool = False) -> Mapping[str, int] | None:
        """Return the number of live objects of the most frequent types, where it is time to count them."""
        blocks = sys.getallocatedblocks()
        if not self.blocks and elapsed_s >= SETTLED_S:
            self.blocks = blocks
        if not self.blocks or (last and not self.counted):
            return None
        affordable = self.spent + self.each <= SHARE * elapsed_s
        if not last and not (affordable and blocks > GREW * self.blocks):
            return None
        began = time.perf_counter()
        types = collections.Counter(map(type, gc.get_objects()))
        self.each = time.perf_counter() - began
        self.spent += self.each
        self.blocks, self.counted = blocks, self.counted + 1
        return _named(types)


def _named(types: collections.Counter[type]) -> dict[str, int]:
    named: dict[str, int] = {}
    for kind, number in types.most_common(MOST_TYPES):
        name = f"{kind.__module__}.{kind.__qualname__}"
        named[name] = named.get(name, 0) + number
    return named


def _resident() -> int | None:
    """Return the resident memory of this process, in bytes."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return None


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


def _entries(folder: str) -> int | None:
    try:
        return len(os.listdir(folder))
    except OSError:
        return None


def _children() -> int | None:
    """Return how many processes this one has started that still run."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return len(file.read().split())
    except OSError:
        return None
