"""How often the stack is sampled: as often as the recorder's share of the run allows."""

from __future__ import annotations

OFTEN_S, FIRST_S = 0.02, 10.0
"""Time between two samples in the first seconds: a run of ten seconds gets some 300."""

USUAL_S = 0.05
"""Time between two samples afterwards."""

AT_MOST = 400
"""Beyond the budget, a sample is followed by so many times its own CPU time of rest: 0.25 % of one core."""

BUDGET = 0.0035
"""Share of the run that the thread and the hooks may take together; the limit is 0.5 %."""

STEP_S, SHARE, MOST_STEP_S = 3e-6, 0.002, 2.5e-5
"""What the hooks take of a step that repeats: 3 us and 0.2 % of it, up to 25 us. Between real steps, 5 to 6 us were
measured where these take 1.3 ms, and 20 to 25 us where they take 8 ms and use much memory, which empties the
processor's caches (`benchmarks/run_overhead.py`)."""

LENT_S = 1.0
"""A run is taken to be so much older than it is: at first all stacks are new, and reading one takes longer."""

LONGEST_S, LATER_S, FEWEST = 0.08, 1.0, 400
"""Time between two samples where the hooks alone take the budget, in steps of 2 ms and less: it grows with the run,
which has so many samples nevertheless."""


class SamplePace:
    """Adds up what the recorder takes of a run that began at a moment, in ns."""

    def __init__(self, began: int) -> None:
        self.began = began
        self.often_until = began + int(FIRST_S * 1e9)
        self.thread_s = 0.0  # CPU time of the thread

    def rest(self, now: int, took_s: float, steps: int) -> float:
        """Return how long to rest after a sample that took so many s, where so many steps were taken so far."""
        usual = OFTEN_S if now < self.often_until else USUAL_S
        age = (now - self.began) / 1e9
        spent = self.thread_s + hooks_s(steps, age)
        owed = spent / BUDGET - age - LENT_S  # s that pass until the budget is kept again
        if owed <= 0.0:
            return usual
        return max(usual, AT_MOST * took_s, min(owed, LATER_S, max(LONGEST_S, age / FEWEST)))


def hooks_s(steps: int, age: float) -> float:
    """Return what the hooks took of so many steps in so many s of a run."""
    return min(steps * STEP_S + SHARE * age, steps * MOST_STEP_S)
