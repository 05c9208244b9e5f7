"""How much a variant saves, and how sure that is: ratios within rounds, with Student's t.

A round runs the program as it is, the variants, and the program as it is again. A variant's figure in a round
is its step over the geometric mean of the two. Runs of the same program differ (memory layout, which cores, other
load), and each round shows that once more, together with what differs from step to step. So the figure is
the mean of the logarithms over rounds, and its interval comes from their spread:

- *by itself*: from the variant's own rounds, n - 1 degrees of freedom. It holds however much its runs differ;
- *with all runs as it is*, whose pairs within rounds show how much runs differ: more degrees of freedom, but
  right only where the variant's runs differ as much. It is made so wide that the intervals of all variants of the
  trial hold together (Bonferroni): one of ten variants without effect must not be claimed to save time.

The wider of the two is reported, wider still by what no spread shows: a margin, and the difference of the program
as it is from itself where there is one. What is claimed follows from the reported interval alone.

The median step of a run does not see work that comes in bursts. So the mean over all steady steps is compared in
the same way: its interval is wide, since it holds every pause of the machine, but where it is clearly below that
of the typical step, it is the one that is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np

from tfdoctor.diagnosis.trials import Difference, Measured
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.record import Record
from tfdoctor.terms.student_t import OUTSIDE, student
from tfdoctor.trial.times import Floats

# Variance of a variant's ratio to the mean of two runs, and of the difference of two, in variances of a run.
RATIO, DIFFERENCE = 1.5, 2.0
NOISY = 0.15  # Half of an interval above which the machine is too noisy to tell
# Rounds below which there is no figure: one shows nothing of how much a variant's own runs differ. With intervals
# from the runs as it is alone, 5 to 16 of 100 simulated trials of equal programs claimed a difference.
FEWEST_ROUNDS = 2
# Share of the step that each interval of a variant is wider by on both sides: runs may differ by this much for
# reasons that no spread of rounds shows.
MARGIN = 0.005
ZERO = 0.001  # Ends of an interval nearer to zero than this share are zero: reports do not show smaller figures


class Round(Record):
    """The steps of one round, in ms: of the program as it is, first and last, and of each variant."""

    before: float
    after: float
    variants: Mapping[str, float]
    whole: "Round | None" = None  # of the same runs, each with the mean of all its steady steps

    @property
    def drift(self) -> float:
        """The logarithm of the last run as it is over the first."""
        return log(self.after / self.before)

    def ratio(self, name: str) -> float:
        """The logarithm of a variant's step over that of the program as it is: the mean of both its runs."""
        return log(self.variants[name]) - (log(self.before) + log(self.after)) / 2


def drift(rounds: Sequence[Round]) -> Measured | None:
    """Return how the program as it is differs from itself (A/A): its last run in a round from the first."""
    differences = np.array([one.drift for one in rounds])
    return None if len(differences) < FEWEST_ROUNDS else _measured(differences, _half_alone(differences))


def saving(rounds: Sequence[Round], name: str, chances: int = 1) -> Measured | None:
    """Return what a variant saves of the step, one of `chances` that are tried; None of fewer than two rounds."""
    return _compared(rounds, lambda one: one.ratio(name), {name}, RATIO, chances)


def against(rounds: Sequence[Round], name: str, other: str) -> Measured | None:
    """Return what a variant saves of the step of another; None where fewer than two rounds have both."""
    return _compared(
        rounds, lambda one: log(one.variants[name] / one.variants[other]), {name, other}, DIFFERENCE, 1
    )


def _compared(
    rounds: Sequence[Round], of: Callable[[Round], float], names: set[str], variance: float, chances: int
) -> Measured | None:
    """Return what the logarithms of the rounds that have the variants show; ``variance`` in variances of a run.

    It is about the typical step, or about all steps where these clearly save less.
    """
    logs = np.array([of(one) for one in rounds if names <= one.variants.keys()])
    if len(logs) < FEWEST_ROUNDS:
        return None
    typical = _measured(logs, _half(logs, variance, rounds, chances))
    whole = _compared(wholes(rounds), of, names, variance, chances)
    if whole is None or typical.difference is not Difference.SAVES or whole.high >= typical.low:
        return typical
    less = whole.difference is Difference.SAVES
    together = "save less" if less else "are not shown to be"
    return replace(
        whole,
        why=(
            f"the typical step is {percent(typical.share)} shorter, but all steps together {together}: "
            "some work comes in bursts between"
        ),
    )


def wholes(rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds with the mean of all steady steps of each run."""
    return [one.whole for one in rounds if one.whole is not None]


def _half(logs: Floats, variance: float, rounds: Sequence[Round], chances: int) -> float:
    """Return half of the interval of a variant, wider where the program as it is differs from itself."""
    own, count = float(np.sum((logs - logs.mean()) ** 2)) / variance, len(logs)
    as_is = sum(one.drift**2 for one in rounds) / DIFFERENCE
    freedom = len(rounds) + count - 1
    error = float(np.sqrt(variance * (own + as_is) / freedom / count))
    half = max(_half_alone(logs), student(freedom, OUTSIDE / chances) * error) + MARGIN
    itself = drift(rounds)
    differs = itself is not None and itself.difference in (Difference.SAVES, Difference.COSTS)
    return half + abs(float(np.log1p(-itself.share))) if itself is not None and differs else half


def _half_alone(logs: Floats) -> float:
    """Return half of the interval of the mean by the spread of its values alone."""
    return student(len(logs) - 1) * float(np.std(logs, ddof=1)) / float(np.sqrt(len(logs)))


def _measured(logs: Floats, half: float) -> Measured:
    """Turn logarithms of ratios into savings: the share of the step that is gone."""
    middle = float(logs.mean())
    share, least, most = (float(1 - np.exp(ratio)) for ratio in (middle, middle + half, middle - half))
    low, high = (0.0 if abs(end) < ZERO else end for end in (least, most))
    if low > 0:
        difference = Difference.SAVES
    elif high < 0:
        difference = Difference.COSTS
    else:  # no difference is said only where the interval holds zero
        difference = Difference.UNKNOWN if (high - low) / 2 > NOISY else Difference.NONE
    rounds = tuple(float(1 - np.exp(ratio)) for ratio in logs)
    return Measured(share=share, low=low, high=high, difference=difference, rounds=rounds)
