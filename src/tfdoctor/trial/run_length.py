"""When a run of a trial has its figures: how many steps it leaves out, and how many it times.

All runs of a trial but the first have the same plan, which the agent gets and writes into what it measured.
"""

from dataclasses import replace
from typing import Self

from tfdoctor.capture.agent.process.declared import TrialPlan
from tfdoctor.terms.record import Record

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
    """When a run has enough; times in s."""

    compare_at: int = MOST_WARM  # the step before which the weights are compared
    fewest: int = FEWEST_CALLS  # calls after the warm-up, without which there is no figure
    steps: int = MOST_TIMED  # after the warm-up
    seconds: float = LEAST_S  # of training after the warm-up
    most_seconds: float = 40.0  # of training in all, if `fewest` is reached by then
    limit_s: float = 300.0  # of the whole run

    @classmethod
    def of(cls, step_s: float, call_s: float, start_s: float) -> Self:
        """Return what is enough for steps that take so long, k of them a call, after a start that takes so long."""
        warm = _within(WARM_S / step_s, FEWEST_WARM, MOST_WARM)
        calls = _within(TIMED_S / call_s, FEWEST_TIMED, MOST_TIMED)
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
        return cls(
            compare_at=MOST_WARM,
            fewest=NEVER,
            steps=NEVER,
            seconds=float(NEVER),
            most_seconds=float(NEVER),
            limit_s=limit_s,
        )

    def within(self, seconds: float) -> Self:
        """Return the plan of a run that may take so long: nobody knows yet how long its start is."""
        return replace(self, limit_s=max(LIMIT_S, seconds))

    def beside(self, runs: int) -> Self:
        """Return the plan of one of as many runs that take turns: the agent's clock goes on while it is stopped."""
        return replace(self, seconds=self.seconds * runs, most_seconds=self.most_seconds * runs)

    def planned_s(self, step_s: float, call_s: float) -> float:
        """Return how long the training of a run takes when it ends as planned."""
        return self.compare_at * step_s + max(self.seconds, self.steps * step_s, self.fewest * call_s)

    def for_agent(self) -> TrialPlan:
        """Return the plan as the agent gets it."""
        return {
            "seconds": self.seconds,
            "steps": self.steps,
            "fewest": self.fewest,
            "most_seconds": self.most_seconds,
            "warmup": self.compare_at + 1,  # reading the weights ends in the step after
            "compare_at": self.compare_at,
        }


# For the first run, which only shows how long a step and a start take, and that both can be timed.
FIRST_RUN = Enough(compare_at=2, fewest=3, steps=10, seconds=4.0, most_seconds=15.0)


def _within(value: float, least: int, most: int) -> int:
    return max(least, min(most, round(value)))
