"""How often the stack is sampled: as often as the recorder's share of the run allows."""

from __future__ import annotations

OFTEN_S, FIRST_S = 0.02, 10.0  # Time between two samples in the first seconds: a run of ten seconds gets some 300
USUAL_S = 0.05  # Time between two samples afterwards
SLOWER = 2.5  # Times as long between two samples of a worker: many do the same, and their times are added up
# Beyond the budget, a sample is followed by so many times its own CPU time of rest: 0.25 % of one core.
AT_MOST = 400
# The longest rest in the first seconds, and how much longer a rest may be than the one before it. A sample stands
# for the time since the one before: a slow one, as where Python collects garbage in it (60 ms of CPU while
# TensorFlow is imported), must not hide the 24 s after it.
FIRST_REST_S, GROWTH = 0.25, 1.5
BUDGET = 0.0035  # Share of the run that the thread and the hooks may take together; the limit is 0.5 %
# What the hooks take of a step that repeats: 3 us and 0.2 % of it, up to 25 us. Between real steps, 5 to 6 us were
# measured where these take 1.3 ms, and 20 to 25 us where they take 8 ms and use much memory, which empties the
# processor's caches (`benchmarks/run_overhead.py`).
STEP_S, SHARE, MOST_STEP_S = 3e-6, 0.002, 2.5e-5
# A run is taken to be so much older than it is: at first all stacks are new, and reading one takes longer.
LENT_S = 1.0
# Time between two samples where the hooks alone take the budget, in steps of 2 ms and less: it grows with the run,
# which has so many samples nevertheless.
LONGEST_S, LATER_S, FEWEST = 0.08, 1.0, 400


class SamplePace:
    """Adds up what the recorder takes of a run that began at a moment, in ns."""

    def __init__(self, began: int, slower: float = 1.0) -> None:
        self.began, self.slower = began, slower
        self.often_until = began + int(FIRST_S * 1e9)
        self.thread_s = 0.0  # CPU time of the thread
        self.rested = OFTEN_S  # after the last sample

    def rest(self, now: int, took_s: float, steps: int) -> float:
        """Return how long to rest after a sample that took so many s, where so many steps were taken so far."""
        first = now < self.often_until
        usual = self.slower * (OFTEN_S if first else USUAL_S)
        age = (now - self.began) / 1e9
        spent = self.thread_s + hooks_s(steps, age)
        owed = spent / BUDGET - age - LENT_S  # s that pass until the budget is kept again
        after = min(AT_MOST * took_s, GROWTH * self.rested)
        after = min(after, FIRST_REST_S) if first else after
        kept = max(after, min(owed, LATER_S, max(self.slower * LONGEST_S, age / FEWEST))) if owed > 0.0 else usual
        self.rested = max(usual, kept)
        return self.rested


def hooks_s(steps: int, age: float) -> float:
    """Return what the hooks took of so many steps in so many s of a run."""
    return min(steps * STEP_S + SHARE * age, steps * MOST_STEP_S)
