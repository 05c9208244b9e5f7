"""The time of a trial: how much is left, how many runs still fit into it, and when a run has its figures.

All runs of a trial but the first have the same plan, which the agent gets and writes into what it measured.
"""

import math
import time
from dataclasses import dataclass, field, replace
from typing import Self

from tfdoctor.terms.humanize import counted
from tfdoctor.terms.record import Record

SPARE = 1.25  # Of an estimated time, as advice: variants and machines become slower
# Weight of the last run in how long a run usually takes: variants and machines become slower and faster.
RECENT = 0.3


@dataclass(slots=True)
class TrialClock:
    """The time of a trial; no run begins after its end."""

    minutes: float
    usual_s: float = 0.0  # of a run
    share: float | None = None  # of the minutes that the user allowed
    began: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108 - of the tests, another clock

    @property
    def left_s(self) -> float:
        """The time that is left, negative when it is over."""
        return self.minutes * 60 - (time.monotonic() - self.began)

    def affordable(self) -> int:
        """Return how many more runs are likely to end in time."""
        return int(self.left_s / self.usual_s) if self.usual_s else 0

    def shortage(self, what: str, runs: int, fewest: int) -> str:
        """Return how many minutes would do, where what is planned needs more runs than fit; "" where all fit.

        Below the ``fewest`` runs there is no result. Nothing is told where it is unknown which share this is of the
        time that the user allowed.
        """
        fit = max(0, self.affordable())
        if fit >= runs or not self.usual_s or not self.share:
            return ""
        spent_s = 60 * self.minutes - self.left_s
        needed = SPARE * (spent_s + runs * self.usual_s) / 60 / self.share
        given, unlikely = self.minutes / self.share, "a clear result" if fit >= fewest else "a result"
        return (
            f"{given:g} {'minute allows' if given == 1 else 'minutes allow'} {counted(fit, 'more run')}, "
            f"and {what} need {runs}, so "
            f"{unlikely} is unlikely: --minutes {math.ceil(2 * needed) / 2:g} would do"
        )

    def took(self, seconds: float) -> None:
        """A run has ended."""
        self.usual_s = (1 - RECENT) * self.usual_s + RECENT * seconds


# Time for the steps that are left out, and their least and largest number: graphs are built, buffers filled and
# parallelism tuned meanwhile. With the start of TensorFlow and the steps that are timed, a run of steps of 1.5 s
# takes half a minute, so that ten minutes hold six rounds of one variant.
WARM_S, FEWEST_WARM, MOST_WARM = 8.0, 4, 20
# Time for the steps that are timed, and their least and largest number: the median of six blocks is still a middle
# one where two of them were delayed.
TIMED_S, FEWEST_TIMED, MOST_TIMED = 10.0, 6, 50

OF_START, LEAST_S, MOST_S = 0.5, 6.0, 30.0
"""Time for the steps that are timed, relative to that of the start, which every run pays; its limits, s.

Other programs of a shared host come and go within seconds: of a fixed computation on such a host, the medians of
8 s differed by 5 %, and those of 16 s by 2 % (standard deviations of nine and of four such times, 2026-11-28).
"""

FEWEST_CALLS = 15  # Calls after the warm-up below which a loop of short steps has no figure: they cost little
NEVER = 10**9  # Steps, calls and seconds that no run of a trial reaches
# A run may take this many times as long as planned, and this much longer: a variant may be slower.
LIMIT_FACTOR, LIMIT_S = 3.0, 60.0


class Enough(Record):
    """When a run has enough, as the agent gets it (`TrialPlan`); times in s."""

    compare_at: int = MOST_WARM  # the step before which the weights are compared
    fewest: int = FEWEST_CALLS  # calls after the warm-up, without which there is no figure
    steps: int = MOST_TIMED  # after the warm-up
    seconds: float = LEAST_S  # of training after the warm-up
    most_seconds: float = 40.0  # of training in all, if `fewest` is reached by then
    limit_s: float = 300.0  # of the whole run

    @classmethod
    def of(cls, step_s: float, call_s: float, start_s: float) -> Self:
        """Return what is enough for steps that take so long, k of them a call, after a start that takes so long."""
        warm = max(FEWEST_WARM, min(MOST_WARM, round(WARM_S / step_s)))
        calls = max(FEWEST_TIMED, min(MOST_TIMED, round(TIMED_S / call_s)))
        timed_s = max(LEAST_S, min(MOST_S, OF_START * start_s))
        plan = cls(compare_at=warm, fewest=min(FEWEST_CALLS, calls), steps=calls, seconds=timed_s)
        planned_s = plan.planned_s(step_s, call_s)
        return replace(
            plan,
            most_seconds=max(plan.most_seconds, 2 * planned_s),
            limit_s=LIMIT_FACTOR * (start_s + planned_s) + LIMIT_S,
        )

    @classmethod
    def whole(cls, limit_s: float) -> Self:
        """Return the plan of a run that is timed to its end, which may take so long: it never has enough."""
        never = float(NEVER)
        return cls(fewest=NEVER, steps=NEVER, seconds=never, most_seconds=never, limit_s=limit_s)

    def beside(self, runs: int) -> Self:
        """Return the plan of one of as many runs that take turns: the agent's clock goes on while it is stopped."""
        return replace(self, seconds=self.seconds * runs, most_seconds=self.most_seconds * runs)

    def planned_s(self, step_s: float, call_s: float) -> float:
        """Return how long the training of a run takes when it ends as planned."""
        return self.compare_at * step_s + max(self.seconds, self.steps * step_s, self.fewest * call_s)


# For the first run, which only shows how long a step and a start take, and that both can be timed.
FIRST_RUN = Enough(compare_at=2, fewest=3, steps=10, seconds=4.0, most_seconds=15.0)
