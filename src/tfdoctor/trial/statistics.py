"""How much a variant saves, and how sure that is: ratios within rounds, with an interval.

A round runs the program as it is, the variants, and the program as it is again. A variant's figure in a round
is its step over the geometric mean of the two. Two things make it uncertain: the steps within a run, which a
bootstrap over blocks and rounds shows, and the runs themselves (memory layout, which cores, other load), which
three rounds cannot show by resampling: a bootstrap of three values is much too narrow. So the spread between runs
is estimated from all runs of the trial together, and the interval is the wider of the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfdoctor.diagnosis import Difference, Measured

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
CONFIDENCE = 0.95

STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Quantiles 0.975 of Student's t with 1 to 20 degrees of freedom; 1.96 (1 + 1.2 / n) is within 0.5 % beyond."""

NOISY = 0.15
"""Half of an interval above which the machine is too noisy to tell."""

SMALLEST = 0.005
"""Share of the step below which a difference is not claimed, however narrow the interval."""


@dataclass(frozen=True, slots=True)
class Round:
    """The runs of one round: the program as it is, first and last, and each variant. Blocks in ms."""

    before: Floats
    after: Floats
    variants: Mapping[str, Floats]

    @property
    def as_is(self) -> float:
        """The logarithm of the step as it is: the mean of both runs'."""
        return (_log(self.before) + _log(self.after)) / 2

    def ratio(self, name: str) -> float:
        """The logarithm of a variant's step over that of the program as it is."""
        return _log(self.variants[name]) - self.as_is


def _log(blocks: Floats) -> float:
    return float(np.log(np.median(blocks)))


def spread(rounds: Sequence[Round]) -> tuple[float, int]:
    """Return the standard deviation between runs of the same program, as a share, and its degrees of freedom.

    Two runs as it is in a round differ by a variance of 2 s²; a variant's ratio to their mean has 1.5 s².
    """
    squares, freedom = 0.0, 0
    for one in rounds:
        squares += (_log(one.after) - _log(one.before)) ** 2 / 2
        freedom += 1
    for name in {name for one in rounds for name in one.variants}:
        ratios = [one.ratio(name) for one in rounds if name in one.variants]
        squares += float(np.var(ratios)) * len(ratios) / 1.5
        freedom += len(ratios) - 1
    return float(np.sqrt(squares / max(1, freedom))), freedom


def student(freedom: int) -> float:
    """Return the quantile 0.975 of Student's t."""
    if freedom < 1:
        return STUDENT[0]
    return STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96 * (1 + 1.2 / freedom)


def drift(rounds: Sequence[Round]) -> Measured:
    """Return how the program as it is differs from itself (A/A): its last run in a round from the first."""
    differences = np.array([_log(one.after) - _log(one.before) for one in rounds])
    deviation, freedom = spread(rounds)
    half = student(freedom) * deviation * np.sqrt(2 / len(rounds))
    middle = float(np.mean(differences))
    return _measured(middle, middle - half, middle + half, tuple(differences))


def saving(rounds: Sequence[Round], name: str, seed: int = 0) -> Measured | None:
    """Return what a variant saves of the step; None of no round that has it."""
    own = [one for one in rounds if name in one.variants]
    if not own:
        return None
    ratios = np.array([one.ratio(name) for one in own])
    middle = float(np.median(ratios))
    low, high = bootstrap(own, name, np.random.default_rng(seed))
    deviation, freedom = spread(rounds)
    half = student(freedom) * deviation * np.sqrt(1.5 / len(own))
    apart = _systematic(rounds)
    return _measured(
        middle, min(low, middle - half) - apart, max(high, middle + half) + apart, tuple(ratios)
    )


def _systematic(rounds: Sequence[Round]) -> float:
    """Return by how much the program as it is differs from itself, where it does: nothing smaller is claimed."""
    itself = drift(rounds)
    return abs(itself.share) if itself.difference in (Difference.SAVES, Difference.COSTS) else 0.0


def bootstrap(
    rounds: Sequence[Round], name: str, random: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of the median over rounds when rounds and blocks are drawn again."""
    drawn = np.stack([_redrawn(one, name, random) for one in rounds])  # (rounds, resamples)
    chosen = random.integers(len(rounds), size=(len(rounds), RESAMPLES))
    medians = np.median(np.take_along_axis(drawn, chosen, axis=0), axis=0)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, (outside, 1 - outside))
    return float(low), float(high)


def _redrawn(one: Round, name: str, random: np.random.Generator) -> Floats:
    """Return the ratio of a round for blocks drawn again, shape (resamples,)."""

    def medians(blocks: Floats) -> Floats:
        drawn = random.integers(len(blocks), size=(RESAMPLES, len(blocks)))
        return np.log(np.median(blocks[drawn], axis=1))

    as_is = (medians(one.before) + medians(one.after)) / 2
    ratios: Floats = medians(one.variants[name]) - as_is
    return ratios


def _measured(middle: float, low: float, high: float, logs: tuple[float, ...]) -> Measured:
    """Turn logarithms of ratios into savings: the share of the step that is gone."""
    share, least, most = 1 - np.exp(middle), 1 - np.exp(high), 1 - np.exp(low)
    return Measured(
        share=float(share),
        low=float(least),
        high=float(most),
        difference=_difference(float(least), float(most)),
        rounds=tuple(float(1 - np.exp(log)) for log in logs),
    )


def _difference(low: float, high: float) -> Difference:
    if low >= SMALLEST:
        return Difference.SAVES
    if high <= -SMALLEST:
        return Difference.COSTS
    return Difference.UNKNOWN if (high - low) / 2 > NOISY else Difference.NONE
