"""The rounds of a trial: which runs, in which order, until the figures are narrow or the time is up.

A round is: as it is, the variants, as it is. Every other round takes the variants in the opposite order (ABBA), so
that a machine that gets slower or faster favors none.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfdoctor.diagnosis import Difference, Measured
from tfdoctor.trial import statistics
from tfdoctor.trial.running import Enough, TrialRun
from tfdoctor.trial.statistics import Round
from tfdoctor.trial.times import NoTimes, RunTimes, per_examples
from tfdoctor.trial.variants import ORIGINAL, Variant

LEAST_ROUNDS = 3
MOST_ROUNDS = 12

NARROW = 0.02
"""Half of an interval, in shares of the step, below which a variant needs no more rounds."""

CLEARLY_WORSE = -0.10
"""Saving below which a variant is dropped after two rounds that agree."""

AROUND = 2
"""Runs of the program as it is in a round."""

LIMIT_FACTOR, LIMIT_S = 3.0, 60.0
"""A run may take this many times as long as the first one, and this much longer."""

RunOne = Callable[[Variant, Enough, int], TrialRun]
Say = Callable[[str], object]


@dataclass(slots=True)
class TrialClock:
    """The time of a trial; the limit holds to within one run."""

    minutes: float
    usual_s: float = 0.0  # of a run
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    @property
    def left_s(self) -> float:
        """The time that is left, negative when it is over."""
        return self.minutes * 60 - (time.monotonic() - self.began)

    def affordable(self) -> int:
        """Return how many more runs are likely to end in time."""
        return int(self.left_s / self.usual_s) if self.usual_s else 0

    def took(self, seconds: float) -> None:
        """A run has ended."""
        self.usual_s = seconds if not self.usual_s else 0.7 * self.usual_s + 0.3 * seconds


@dataclass(slots=True)
class Runs:
    """All runs of a trial so far."""

    one: RunOne
    clock: TrialClock
    say: Say
    enough: Enough = field(default_factory=Enough)
    number: int = 0
    original: list[TrialRun] = field(default_factory=list)
    tried: dict[str, list[TrialRun]] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)  # variants without a figure

    def first(self) -> TrialRun:
        """Run the program as it is, before any round: it tells how long a run takes and whether it can be timed."""
        run = self._run(ORIGINAL, "first run, as it is")
        self.original.append(run)
        self.enough = replace(self.enough, limit_s=LIMIT_FACTOR * run.seconds + LIMIT_S)
        return run

    def round(self, variants: Sequence[Variant]) -> None:
        """Run one round; without a figure of the program as it is, it is left out."""
        turn = list(variants)
        if len(self.rounds) % 2:
            turn.reverse()
        number = len(self.rounds) + 1
        before = self._original(number)
        timed = {variant.name: self._variant(variant, number) for variant in turn}
        after = self._original(number)
        if isinstance(before, RunTimes) and isinstance(after, RunTimes):
            blocks = {
                name: times.blocks_ms
                for name, times in timed.items()
                if isinstance(times, RunTimes) and not self._other_steps(name, times, before)
            }
            self.rounds.append(Round(before.blocks_ms, after.blocks_ms, blocks))

    def _original(self, number: int) -> RunTimes | NoTimes:
        run = self._run(ORIGINAL, f"round {number}, as it is")
        self.original.append(run)
        return run.times

    def _variant(self, variant: Variant, number: int) -> RunTimes | NoTimes:
        run = self._run(variant, f"round {number}, {variant.name}")
        self.tried.setdefault(variant.name, []).append(run)
        if isinstance(run.times, NoTimes):
            self.why[variant.name] = run.error or run.times.why
        return per_examples(run.times, variant.examples)

    def _other_steps(self, name: str, times: RunTimes, original: RunTimes) -> bool:
        """Say whether a variant's steps are not those of the program as it is, and note it.

        Updates of the weights make them comparable; where these were not counted, the loop must be the same.
        """
        if times.counted and original.counted:
            return False
        if times.counted == original.counted and times.loop.source == original.loop.source:
            return False
        self.why[name] = (
            "its steps cannot be compared: the updates of the weights could not be counted"
        )
        return True

    def _run(self, variant: Variant, what: str) -> TrialRun:
        left = max(0.0, self.clock.left_s) / 60
        self.say(f"{what} ({left:.0f} of {self.clock.minutes:.0f} minutes left)")
        self.number += 1
        run = self.one(variant, self.enough, self.number)
        self.clock.took(run.seconds)
        return run

    def open_variants(self, variants: Sequence[Variant]) -> list[Variant]:
        """Return the variants that need another round."""
        return [variant for variant in variants if self._needs_more(variant)]

    def _needs_more(self, variant: Variant) -> bool:
        if variant.name in self.why:
            return False
        measured = statistics.saving(self.rounds, variant.name)
        if measured is None:
            return True
        done = len(measured.rounds)
        if done >= 2 and max(measured.rounds) < CLEARLY_WORSE:  # noqa: PLR2004 - two that agree
            return False
        return done < LEAST_ROUNDS or (measured.high - measured.low) / 2 > NARROW

    def measured(self, names: Sequence[str]) -> Mapping[str, Measured]:
        """Return what was measured of each variant that has a figure."""
        found = {name: statistics.saving(self.rounds, name) for name in names}
        return {name: measured for name, measured in found.items() if measured is not None}


def run_rounds(runs: Runs, variants: Sequence[Variant]) -> None:
    """Run rounds until every variant's figure is narrow enough, or the time is up."""
    begun = len(runs.rounds)
    while len(runs.rounds) - begun < MOST_ROUNDS:
        left = runs.open_variants(variants)
        affordable = runs.clock.affordable() - AROUND
        if not left or affordable < 1:
            return
        left = left[:affordable]  # of little time, those that promise most get a figure
        known = len(runs.rounds)
        runs.round(left)
        if len(runs.rounds) == known and not runs.open_variants(variants):
            return


Join = Callable[[Sequence[Variant]], Variant | None]
"""Makes one variant of several; None where they do not go together."""


def together(runs: Runs, helped: Sequence[Variant], join: Join) -> Variant | None:
    """Add the variants that helped one by one, in their order; return the largest set that helps most.

    A variant stays when the set with it is not slower than the set without: the two run in the same rounds.
    """
    kept, best = [helped[0]], helped[0]
    for variant in helped[1:]:
        candidate = join([*kept, variant])
        if candidate is None:
            continue
        run_rounds(runs, [best, candidate] if len(kept) > 1 else [candidate])
        measured = runs.measured([best.name, candidate.name])
        if candidate.name not in measured:
            continue
        if measured[candidate.name].share > measured[best.name].share:
            kept, best = [*kept, variant], candidate
    return best if len(kept) > 1 else None


def helps(measured: Measured | None) -> bool:
    """Say whether a variant was shown to save time."""
    return measured is not None and measured.difference is Difference.SAVES
