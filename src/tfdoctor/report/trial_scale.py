"""The measured savings on one scale: each variant's rounds, interval and promise, with zero marked."""

import math
from collections.abc import Sequence

from tfdoctor.diagnosis import Difference, Measured, RunSaving, Saving, Trial
from tfdoctor.report.trial_words import interval, number
from tfdoctor.report.words import is_known
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound

LOWEST = -0.5  # Least end of the scale: a variant that takes several times as long would hide what the others save

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_TICKS = 6  # Labels that fit beside each other on a phone


class ScaleTick(Record):
    """A label of the scale; positions are percentages of its width."""

    at: float
    label: str
    zero: bool


class IntervalPicture(Record):
    """A variant on the scale, in percentages of its width, and the same in words."""

    range: tuple[float, float] | None  # where the interval begins, and its width; None if it says nothing
    points: tuple[float, ...]
    promise: float | None
    at_most: bool  # the promise is an upper bound
    below: bool  # something lies below the lower end of the scale
    above: bool
    words: str


class SavingScale(Record):
    """A scale of savings from `low` to `high`, shares of the step."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, rows: Sequence[Trial]) -> "SavingScale":
        """Return the scale that shows these variants; its ends are multiples of its step.

        The ends of an interval that says nothing need not be on it.
        """
        values = [0.0]
        for row in rows:
            if row.measured is not None:
                promised = promise(row.promised_run or row.promised)
                values += (*row.measured.rounds, *_ends(row.measured), promised or 0.0)
        inside = [min(1.0, max(LOWEST, value)) for value in values]
        low, high = min(inside), max(inside)
        ends = ((math.floor(low / step), math.ceil(high / step), step) for step in STEPS)
        first, last, step = next(end for end in ends if end[1] - end[0] < MOST_TICKS)
        return cls(first * step, max(last, first + 1) * step, step)

    @property
    def ticks(self) -> tuple[ScaleTick, ...]:
        """The labels, from the lower end to the upper."""
        first, last = round(self.low / self.step), round(self.high / self.step)
        return tuple(
            ScaleTick(self.at(n * self.step), f"{number(n * self.step)} %", not n) for n in range(first, last + 1)
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
        at_most = stated is not None and stated.bound is Bound.AT_MOST
        everything = (*ends, *one.rounds)
        left, right = (self.at(end) for end in ends or (0.0, 0.0))
        rounds = ", ".join(f"{number(share)} %" for share in one.rounds)
        words = [f"Saving in each round: {rounds}."]
        words.append(f"95 % interval: {interval(one)}." if ends else "No interval.")
        if promised is not None:
            words.append(f"Promised: {'at most ' if at_most else ''}{number(promised)} %.")
        return IntervalPicture(
            range=(left, round(right - left, 2)) if ends else None,
            points=tuple(self.at(share) for share in one.rounds if self.low <= share <= self.high),
            promise=None if promised is None else self.at(promised),
            at_most=at_most,
            below=min(everything) < self.low,
            above=max(everything) > self.high,
            words=" ".join(words),
        )


def _ends(measured: Measured) -> tuple[float, ...]:
    """Return the ends of an interval; () of one that says nothing."""
    return () if measured.difference is Difference.UNKNOWN else (measured.low, measured.high)


def promise(promised: Saving | RunSaving | None) -> float | None:
    """Return the share of the step or of the run that is promised; None without a figure."""
    return promised.share if promised is not None and is_known(promised.share) else None
