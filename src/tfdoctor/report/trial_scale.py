"""The measured savings on one scale: each variant's rounds, interval and promise, with zero marked."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis import Difference, Measured, RunSaving, Saving, Trial
from tfdoctor.report.run.words import is_known
from tfdoctor.report.trial_words import interval, number
from tfdoctor.terms.verdict import Bound

LOWEST = -0.5
"""Least end of the scale: a variant that takes several times as long would hide what the others save."""

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_TICKS = 6
"""Labels that fit beside each other on a phone."""


@dataclass(frozen=True, slots=True)
class ScaleTick:
    """A label of the scale; positions are percentages of its width."""

    at: float
    label: str
    zero: bool


@dataclass(frozen=True, slots=True)
class IntervalPicture:
    """A variant on the scale, in percentages of its width, and the same in words."""

    range: (
        tuple[float, float] | None
    )  # where the interval begins, and its width; None if it says nothing
    points: tuple[float, ...]
    promise: float | None
    at_most: bool  # the promise is an upper bound
    below: bool  # something lies below the lower end of the scale
    above: bool
    words: str


@dataclass(frozen=True, slots=True)
class SavingScale:
    """A scale of savings from `low` to `high`, shares of the step."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, rows: Sequence[Trial]) -> "SavingScale":
        """Return the scale that shows these variants; its ends are multiples of its step."""
        values = [min(1.0, max(LOWEST, value)) for row in rows for value in _shown(row)]
        low, high = min([0.0, *values]), max([0.0, *values])
        ends = ((math.floor(low / step), math.ceil(high / step), step) for step in STEPS)
        first, last, step = next(end for end in ends if end[1] - end[0] < MOST_TICKS)
        return cls(first * step, max(last, first + 1) * step, step)

    @property
    def ticks(self) -> tuple[ScaleTick, ...]:
        """The labels, from the lower end to the upper."""
        first, last = round(self.low / self.step), round(self.high / self.step)
        return tuple(
            ScaleTick(self.at(n * self.step), f"{number(n * self.step)} %", not n)
            for n in range(first, last + 1)
        )

    def at(self, value: float) -> float:
        """Return the position of a share; one beyond the scale is at its end."""
        inside = min(self.high, max(self.low, value))
        return round(100 * (inside - self.low) / (self.high - self.low), 2)

    def picture(self, row: Trial) -> IntervalPicture | None:
        """Return a variant on the scale; None without a figure."""
        one = row.measured
        if one is None:
            return None
        stated = row.promised_run or row.promised
        ends, promised = _ends(one), promise(stated)
        everything = (*ends, *one.rounds)
        left, right = (self.at(end) for end in ends or (0.0, 0.0))
        return IntervalPicture(
            (left, round(right - left, 2)) if ends else None,
            tuple(self.at(share) for share in one.rounds if self.low <= share <= self.high),
            None if promised is None else self.at(promised),
            stated is not None and stated.bound is Bound.AT_MOST,
            min(everything) < self.low,
            max(everything) > self.high,
            _words(one, stated),
        )


def _shown(row: Trial) -> Iterator[float]:
    """Yield what the scale must hold: not the ends of an interval that says nothing."""
    if row.measured is None:
        return
    yield from row.measured.rounds
    yield from _ends(row.measured)
    promised = promise(row.promised_run or row.promised)
    if promised is not None:
        yield promised


def _ends(measured: Measured) -> tuple[float, ...]:
    """Return the ends of an interval; () of one that says nothing."""
    return () if measured.difference is Difference.UNKNOWN else (measured.low, measured.high)


def promise(promised: Saving | RunSaving | None) -> float | None:
    """Return the share of the step or of the run that is promised; None without a figure."""
    return promised.share if promised is not None and is_known(promised.share) else None


def _words(measured: Measured, promised: Saving | RunSaving | None) -> str:
    rounds = ", ".join(f"{number(share)} %" for share in measured.rounds)
    between = f"95 % interval: {interval(measured)}." if _ends(measured) else "No interval."
    parts = [f"Saving in each round: {rounds}.", between]
    if promised is not None and is_known(promised.share):
        most = "at most " if promised.bound is Bound.AT_MOST else ""
        parts.append(f"Promised: {most}{number(promised.share)} %.")
    return " ".join(parts)
