"""What tests of the account of a run are written with: ``from tests.capture.run.kit import *``."""

import functools
import itertools
import weakref
from collections import Counter
from types import CodeType, MethodType

from tests.capture.kit import *
from tests.facts.kit import Names

clocks: Any = agent.load("run.clock")
kinds = agent.load("run.kinds")
kept: Any = agent.load("process.kept").time
"""Where the agent's modules look at the time."""

EAGER = "tensorflow.python.eager.context", SimpleNamespace(executing_eagerly=lambda: True)
"""A module of TensorFlow by its name, for hooks that ask it whether TensorFlow runs eagerly."""

USERS = "/project/train.py"
MS, S = 1_000_000, 1_000_000_000


def caller() -> FrameType:
    """Return the frame that called the caller's function."""
    return sys._getframe(2)  # noqa: SLF001 - inspect.stack() reads the source of all frames


def users(source: str, path: str = USERS, **names: Any) -> dict[str, Any]:
    """Run a source as a file of the user's, or another, with these names; return all that it has then."""
    exec(compile(source, path, "exec"), names)
    return names


class BrokenError(Exception):
    """An exception of the user's."""


@dataclass
class Time:
    """A clock that goes on when the program works, and by one ns at each look."""

    now: int = 1_000
    left: int = -1  # looks until the user presses Ctrl-C; -1: they do not

    def __call__(self) -> int:
        self.now += 1
        if not self.left:
            self.left = -1
            raise KeyboardInterrupt
        self.left -= self.left > 0
        return self.now

    def sleep(self, ms: float) -> None:
        self.now += int(ms * MS)


@contextlib.contextmanager
def fake_time() -> Iterator[Time]:
    before, kept.perf_counter_ns = kept.perf_counter_ns, Time()
    try:
        yield kept.perf_counter_ns
    finally:
        kept.perf_counter_ns = before


@pytest.fixture
def moment() -> Iterator[Time]:
    with fake_time() as time:
        yield time


def started() -> Any:
    clock = clocks.CallClock()
    clock.begin(threading.get_ident())
    return clock


@pytest.fixture
def clock(moment: Time) -> Any:
    """A clock that has begun, in a time of its own."""
    assert kept.perf_counter_ns is moment
    return started()


def check(clock: Any) -> dict[Any, int]:
    """Every ns is in one place; return those of each."""
    totals, now = clock.read()
    assert sum(totals.values()) == now - clock.began
    assert all(ns >= 0 for ns in totals.values())
    assert set(totals) <= set(clock.places.made)
    found: dict[Any, int] = totals
    return found


def steps_of(clock: Any, kind: str = kinds.STEP) -> int:
    """Return how many steps, or other calls of a kind, were entered."""
    return sum(n for place, n in clock.entered.items() if place.kind == kind)


def only_steps(clock: Any) -> Any:
    """Return what ended at the one place at which steps were taken."""
    clock.pass_over()
    (ended,) = clock.steps.take(10**9)[0].values()
    return ended
