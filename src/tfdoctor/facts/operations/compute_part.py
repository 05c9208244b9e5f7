"""A part of the compute time of a step, as rules state it in sentences and as evidence."""

from dataclasses import dataclass

from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Measure


@dataclass(frozen=True, slots=True)
class ComputePart:
    """What some work takes of the compute time, in ms per step."""

    ms: float
    total_ms: float

    @property
    def share(self) -> float:
        """Its share of the compute time, 0 to 1."""
        return self.ms / self.total_ms if self.total_ms else 0.0

    def __str__(self) -> str:
        return f"{milliseconds(self.ms)} per step, {percent(self.share)} of the compute time"

    def measures(self, work: str, least: float | None = None) -> tuple[Measure, Measure]:
        """Return its time and its share, with the least one that counts; ``work`` is such as "in casts"."""
        limit = None if least is None else ratio(least)
        share = Measure(f"share of the compute time {work}", ratio(self.share), limit)
        return Measure(f"time {work} per step", ms(self.ms)), share
