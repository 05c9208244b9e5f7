"""What grows over the run: the time of a step, memory, graphs, live objects."""

from dataclasses import dataclass
from enum import StrEnum


class Grows(StrEnum):
    """What may grow."""

    STEP = "step time"
    RESIDENT = "resident memory"
    DEVICE = "device memory"
    BLOCKS = "Python's memory blocks"
    GRAPH = "operations of the default graph"
    FUNCTIONS = "traced functions"
    FILES = "open files"
    OBJECTS = "live Python objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A robust trend (Theil-Sen, without the first tenth): values at begin and end, and its 95 % interval.

    In ms for steps, in bytes for memory, else numbers; ``slope`` is per second of the run. ``steady`` says that
    both halves grow alike, not only the first: no warm-up, no plateau.
    """

    what: Grows
    first: float
    last: float
    slope: float
    low: float
    high: float
    steady: bool
    points: int
    name: str = ""  # of OBJECTS: the type
    over_steps: int = 0  # steps meanwhile

    @property
    def grows(self) -> bool:
        """Whether it certainly grows, and has not stopped."""
        return self.low > 0 and self.steady


@dataclass(frozen=True, slots=True)
class RunGrowth:
    """The trends that could be measured."""

    trends: tuple[Trend, ...]
    seconds: float  # of the run that they cover

    def of(self, what: Grows) -> Trend | None:
        """Return the trend of something; None where it was not measured."""
        return next((trend for trend in self.trends if trend.what is what), None)

    @property
    def objects(self) -> tuple[Trend, ...]:
        """The types of live objects that certainly grow in number, the fastest first."""
        found = [t for t in self.trends if t.what is Grows.OBJECTS and t.grows]
        return tuple(sorted(found, key=lambda trend: -trend.slope))
