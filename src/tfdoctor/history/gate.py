"""Whether the newest commit is slower than the runs before it, by what the differences of these show.

The usual value is the median of the logarithms of the last runs, and their spread is 1.4826 times the median
absolute deviation from it: neither sees a few odd runs (Rousseeuw and Croux, "Alternatives to the Median Absolute
Deviation", Journal of the American Statistical Association 88, 1993). A further run of the same program is within
Student's t times the spread of the usual value, widened because the median is an estimate too. The degrees of
freedom are 37 % of those of a standard deviation, as that is the efficiency of the deviation used (same source).
With normal noise, 2.5 % of the runs or fewer are above the interval, and with the heavy tails of Student's t with 3
degrees of freedom 6 %.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tfdoctor.compare.budgets import state
from tfdoctor.compare.step_times import LEAST_SPREAD
from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.diagnosis.history_report import ChangePoint, RegressionCheck
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.student_t import student

FEWEST = 5  # Runs below which nothing is decided: of 4, the spread is as good as unknown
NORMAL = 1.4826  # Standard deviation of a normal distribution for its median absolute deviation
EFFICIENCY = 0.37  # Of the median absolute deviation, relative to the standard deviation of normal noise
OF_MEDIAN = 1.57  # Variance of the median of normal noise, relative to that of the mean: pi / 2
# Relative difference up to which a level counts as the former one: medians of few runs of 2 % noise differ so.
SAME_LEVEL = 0.02

SINCE_CHANGE = "since the level changed"
SINCE_ACCEPTED = "since the accepted change"
BEFORE_REGRESSION = "before a regression that nobody accepted"


def reference(
    changes: Sequence[ChangePoint], starts: Sequence[int], window: tuple[int, int]
) -> tuple[int, int, str]:
    """Return from and to before which place runs are compared with the newest commit, and why no others are.

    They are those of a window, up to before the newest commit. An improvement or an accepted change begins a new
    level. A regression that nobody accepted does not: the runs after it are left out until a level as low as the
    former one, so that the gate fails until it is mended or accepted, or lies before the window. ``starts`` are
    places of accepted commits.
    """
    begin, newest = window
    end, why = newest, ""
    level = changes[0].before if changes else 0.0
    for change in (one for one in changes if one.at < newest):
        if change.at <= begin:
            level = change.after
        elif change.accepted or change.after <= level * (1 + SAME_LEVEL):
            begin, end, why, level = change.at, newest, SINCE_CHANGE, change.after
        elif change.share > 0:
            end, why = min(end, change.at), BEFORE_REGRESSION
    accepted = max((one for one in starts if one <= newest), default=0)
    if accepted > begin:
        begin, end, why = accepted, newest if end <= accepted else end, SINCE_ACCEPTED
    return begin, end, why


def checked(
    newest: Sequence[float], before: Sequence[float], limit: float | None, why: str = ""
) -> RegressionCheck:
    """Return how the newest commit compares with the runs before it, and whether it is worse by more than a limit.

    ``why`` says which runs these are, where some are left out.
    """
    check = RegressionCheck(limit=limit, state=None, runs=len(before), why=why)
    if not newest:
        found = None if limit is None else BudgetState.UNKNOWN
        return replace(check, state=found, why="the newest run does not have it")
    value = float(np.median(newest))
    if len(before) < FEWEST:
        few = f"there {'is' if len(before) == 1 else 'are'} {counted(len(before), 'run')} to compare with"
        told = f"{f'{few} {why}' if why else few}, and at least {FEWEST} are needed"
        found = None if limit is None else BudgetState.UNCLEAR
        return replace(check, state=found, newest=value, why=told)
    logs = np.log(before)
    middle = float(np.median(logs))
    change = float(np.log(value)) - middle
    spread = max(LEAST_SPREAD, NORMAL * float(np.median(np.abs(logs - middle))))
    quantile = student(max(1.0, EFFICIENCY * (len(before) - 1)))
    half = quantile * spread * float(np.sqrt(1 + OF_MEDIAN / len(before)))  # of the interval of a further run
    low, high = (float(np.expm1(change + side)) for side in (-half, half))
    return replace(
        check,
        state=None if limit is None else state(limit, low, high, at_least=False),
        newest=value,
        usual=float(np.exp(middle)),
        change=float(np.expm1(change)),
        low=low,
        high=high,
    )
