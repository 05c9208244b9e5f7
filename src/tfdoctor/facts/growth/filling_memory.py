"""Memory that grows over the run, and when it would be full."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.terms.humanize import milliseconds, quantity
from tfdoctor.terms.units import nbytes
from tfdoctor.terms.verdict import Severity

HOUR_S = 3600.0  # Seconds until memory is full from which on downwards it is critical: most trainings take longer
# Seconds until memory is full from which on downwards it is a warning: long trainings take days.
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True)
class FillingMemory:
    """One memory: its trend in bytes, the limit, and the seconds until it is full at this rate; None is unknown.

    ``planned_s`` is how long the run would go on as planned, 0 where it ended or has no plan.
    """

    trend: Trend
    limit: float | None = None
    planned_s: float = 0.0
    ran_out: bool = False
    reserved: Trend | None = None  # of resident memory: all that the program may write

    @property
    def fills_reserved(self) -> bool:
        """Whether it mostly became resident where it was reserved before, as an array that fills: that ends."""
        reserved = self.reserved
        return reserved is not None and reserved.last - reserved.first < self.grown / 2

    @property
    def name(self) -> str:
        """What memory it is."""
        return str(self.trend.what)

    @property
    def grown(self) -> float:
        """Bytes that it grew by."""
        return self.trend.last - self.trend.first

    @property
    def left_s(self) -> float | None:
        """The seconds until it is full at this rate."""
        if self.limit is None or self.trend.slope <= 0:
            return None
        return max(0.0, self.limit - self.trend.last) / self.trend.slope

    @property
    def severity(self) -> Severity:
        """How bad it is: whether memory gets full in the run, in an hour or in a day."""
        left = self.left_s
        if self.ran_out or (left is not None and left <= max(self.planned_s, HOUR_S)):
            return Severity.CRITICAL
        return Severity.WARNING if left is not None and left <= DAY_S else Severity.NOTE

    @property
    def end(self) -> str:
        """When it is full, as a clause; "" is unknown."""
        if self.ran_out:
            return "and ran out"
        left, limit = self.left_s, self.limit
        if left is None or limit is None:
            return ""
        return f"which fills {quantity(nbytes(limit))} in about {about_span(left)}"


@dataclass(frozen=True, slots=True)
class MemoryTrends:
    """The memories whose trend is known: resident first, then the device's."""

    memories: tuple[FillingMemory, ...]

    @classmethod
    def measure(
        cls, growth: RunGrowth, ending: RunEnding | None, device: DeviceMemory | None, calls: RunCalls | None
    ) -> Self:
        """Relate the trends to the limits.

        Raises:
            Unavailable: the memory of the run was not recorded often enough for a trend.
        """
        limits = {
            Grows.RESIDENT: ending.limit_bytes if ending else None,
            Grows.DEVICE: device.fullest.limit if device else None,
        }
        trends = list(filter(None, map(growth.of, limits)))
        if not trends:
            raise Unavailable("the run was too short for a trend of its memory", "record a longer run")
        full = Grows.DEVICE if ending and ending.allocator else Grows.RESIDENT
        ran_out = full if ending and ending.kind is EndKind.OUT_OF_MEMORY else None
        planned_s = 0.0
        if calls and calls.planned_epochs and calls.epochs:
            planned_s = growth.seconds / calls.epochs * max(0, calls.planned_epochs - calls.epochs)
        reserved = {Grows.RESIDENT: growth.of(Grows.RESERVED)}
        return cls(
            tuple(
                FillingMemory(one, limits[one.what], planned_s, one.what is ran_out, reserved.get(one.what))
                for one in trends
            )
        )


_DAYS = 2  # From so many days on a span is told in days


def about_span(seconds: float) -> str:
    """Return a long time to one or two digits: ``40 min``, ``3 h``, ``5 days``."""
    if seconds >= _DAYS * DAY_S:
        return f"{seconds / DAY_S:,.0f} days"
    if seconds >= 1.5 * HOUR_S:
        return f"{seconds / HOUR_S:.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 2 * 60 else milliseconds(1000 * round(seconds))
