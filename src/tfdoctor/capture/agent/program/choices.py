"""The user's lines that choose how a run computes: strategies, threads, and aids for debugging."""

from __future__ import annotations

import weakref

from ..process.kept import time
from ..process.stack import here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..process.journal import Journal
    from ..process.stack import Line
    from ..stream import Held

# The aids, by what switches them on.
CHECKS, EAGERLY, DATA_MODE = "check_numerics", "functions_eagerly", "data_debug_mode"
DETERMINISM = "op_determinism"


class Choices:
    """What the script has chosen, each with its line."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.strategies: weakref.WeakKeyDictionary[Foreign, Line | None] = weakref.WeakKeyDictionary()
        self.threads: Line | None = None  # of single operations
        self.aids: dict[str, Line | None] = {}  # those that are on
        self.checking_ns = 0  # Python's time in checks of the whole window; what came before is not of interest
        self.timing = False  # a window is open

    def switched(self, aid: str, *, on: object) -> None:
        """The script switches an aid for debugging on or off."""
        if on:
            self.aids[aid] = here()
        else:
            self.aids.pop(aid, None)

    def check(self, held: Held, *_: object) -> None:
        """An operation is checked: Python makes the text of its message beforehand."""
        if self.timing:
            held.append((self._checked, time.perf_counter_ns()))

    def _checked(self, began_ns: int, *_: object) -> None:
        self.checking_ns += time.perf_counter_ns() - began_ns

    def debugging(self) -> list[dict[str, object]]:
        """Return the aids that are on; `ms` is Python's time in checks."""
        spent = {CHECKS: round(self.checking_ns / 1e6, 3)}
        return [{"aid": aid, "at": line, "ms": spent.get(aid, 0.0)} for aid, line in self.aids.items()]


def homes(strategy: Foreign, config: Foreign) -> list[str]:
    """Return the physical device of each replica of this process; a remote one keeps its own name."""
    physical: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for device in config.get_visible_devices():
        kind = device.device_type
        for _ in config.get_logical_device_configuration(device) or [None]:
            number = numbers.get(kind, 0)
            physical[f"{kind}:{number}"], numbers[kind] = device.name, number + 1
    names = [str(name) for name in strategy.extended.worker_devices]
    return [physical.get(_local(name), name) for name in names]


def _local(name: str) -> str:
    """Return "GPU:0" of a device of this process, "" of one that another process may have."""
    job, _, device = name.rpartition("device:")
    return device if "/job:" not in job or "/job:localhost" in job else ""
