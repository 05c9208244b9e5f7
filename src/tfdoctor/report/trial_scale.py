"""The measured savings on one scale: each variant's rounds, interval and promise, with zero marked."""

import math
from collections.abc import Sequence
from typing import Self

from tfdoctor.diagnosis.trials import Difference, Measured, Trial
from tfdoctor.report.trial_words import figures, number, promise
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound

LOWEST = -0.5  # Least end of the scale: a variant that takes several times as long would hide what the others save

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_TICKS = 6  # Labels that fit beside each other on a phone


class Picture(Record, kw_only=True):
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
    def of(cls, rows: Sequence[Trial]) -> Self:
        """Return the scale that shows these variants; its ends are multiples of its step."""
        values = [0.0]
        for row in rows:
            if row.measured is not None:
                promised = promise(row.promised_run or row.promised)
                values += (*row.measured.rounds, *_ends(row.measured), promised or 0.0)
        inside = [min(1.0, max(LOWEST, value)) for value in values]
        ends = ((math.floor(min(inside) / step), math.ceil(max(inside) / step), step) for step in STEPS)
        first, last, step = next(end for end in ends if end[1] - end[0] < MOST_TICKS)
        return cls(first * step, max(last, first + 1) * step, step)

    @property
    def ticks(self) -> tuple[tuple[float, str, bool], ...]:
        """The positions and labels from the lower end to the upper, and which of them is zero."""
        steps = range(round(self.low / self.step), round(self.high / self.step) + 1)
        return tuple((self.at(n * self.step), f"{number(n * self.step)} %", not n) for n in steps)

    def at(self, value: float) -> float:
        """Return the position of a share, in percent of the width; one beyond the scale is at its end."""
        inside = min(self.high, max(self.low, value))
        return round(100 * (inside - self.low) / (self.high - self.low), 2)

    def picture(self, row: Trial) -> Picture | None:
        """Return a variant on the scale; None without a figure."""
        one, stated = row.measured, row.promised_run or row.promised
        if one is None:
            return None
        ends, promised = _ends(one), promise(stated)
        everything = (*ends, *one.rounds)
        at_most = stated is not None and stated.bound is Bound.AT_MOST
        left, right = (self.at(end) for end in ends or (0.0, 0.0))
        words = [f"Saving in each round: {', '.join(f'{number(share)} %' for share in one.rounds)}."]
        words.append(f"95 % interval: {figures(one)[1]}." if ends else "No interval.")
        if promised is not None:
            words.append(f"Promised: {'at most ' if at_most else ''}{number(promised)} %.")
        return Picture(
            range=(left, round(right - left, 2)) if ends else None,
            points=tuple(self.at(share) for share in one.rounds if self.low <= share <= self.high),
            promise=None if promised is None else self.at(promised),
            at_most=at_most,
            below=min(everything) < self.low,
            above=max(everything) > self.high,
            words=" ".join(words),
        )


def _ends(measured: Measured) -> tuple[float, ...]:
    """Return the ends of an interval; () of one that says nothing, which need not be on the scale."""
    return () if measured.difference is Difference.UNKNOWN else (measured.low, measured.high)
