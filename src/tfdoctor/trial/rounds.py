"""The rounds of a trial: the runs of each, in which order, and what they measured.

A round is: as it is, the variants, as it is. Every other round takes the variants in the opposite order (ABBA), so
that a machine that gets slower or faster favors none. Where the memory holds all runs of a round, they take turns
(`turns`) instead of following each other. Which variants a round holds is in `schedule`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tfdoctor.diagnosis.trials import Measured
from tfdoctor.trial import statistics
from tfdoctor.trial.clock import TrialClock
from tfdoctor.trial.run_length import FIRST_RUN, Enough
from tfdoctor.trial.statistics import Round
from tfdoctor.trial.times import NoTimes, TrialTimes, examples_ratio, other_examples, per_examples
from tfdoctor.trial.trial_run import TrialRun
from tfdoctor.trial.variants import ORIGINAL, Variant

AROUND = 2  # Runs of the program as it is in a round

RunOne = Callable[[Variant, Enough, int], TrialRun]
RunByTurns = Callable[[Sequence[Variant], Enough, int], Sequence[TrialRun]]
Say = Callable[[str], object]


@dataclass(slots=True)
class Runs:
    """All runs of a trial so far."""

    one: RunOne
    clock: TrialClock
    say: Say
    by_turns: RunByTurns
    at_once: Callable[[], int]  # how many runs may go on at once
    enough: Enough = FIRST_RUN
    number: int = 0
    tries: list[TrialRun] = field(default_factory=list)  # all of them, the first too
    original: list[TrialRun] = field(default_factory=list)  # as it is, in rounds
    tried: dict[str, list[TrialRun]] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    spoiled: int = 0  # rounds without a figure of the program as it is
    why: dict[str, str] = field(default_factory=dict)  # variants without a figure
    sets: set[str] = field(default_factory=set)  # variants that are made of others
    interrupted: bool = False  # by Ctrl-C
    examples: dict[str, Fraction] = field(default_factory=dict)  # of a variant's step, as seen
    ready: list[TrialRun] = field(default_factory=list)  # of this round, in its order
    turns: int = 0  # rounds whose runs took turns
    alone: bool = False  # the program fails beside itself
    by_mean: bool = False  # the mean over all steady steps is compared, not the typical step

    def first(self) -> TrialRun:
        """Run the program as it is, before any round: the plan of all other runs follows from its step."""
        self.enough = self.enough.within(self.clock.left_s)
        run = self._run(ORIGINAL, "first run, as it is")
        if isinstance(run.times, TrialTimes):
            step_s, call_s = run.times.loop.usual_s
            start_s = max(0.0, run.seconds - run.times.loop.covers_ms / 1e3)
            self.enough = Enough.of(step_s, call_s, start_s)
            self.clock.usual_s = start_s + self.enough.planned_s(step_s, call_s)
        return run

    def round(self, variants: Sequence[Variant]) -> None:
        """Run one round, as far as the time allows; without both runs as it is, it counts for nothing."""
        turn = list(variants)
        if len(self.rounds) % 2:
            turn.reverse()
        number = len(self.rounds) + 1
        turns = self._take_turns([ORIGINAL, *turn, ORIGINAL], number)
        before = self._original(number)
        if not isinstance(before, TrialTimes):
            self.spoiled += 1
            return
        timed: dict[str, TrialTimes | NoTimes] = {}
        for variant in turn:
            # Time for this run, and the last as it is:
            if self.ready or self.clock.left_s >= AROUND * self.clock.usual_s:
                timed[variant.name] = self._variant(variant, number, before)
        left = self.ready or self.clock.left_s > 0
        after = self._original(number) if timed and left else None
        if not isinstance(after, TrialTimes):
            self.spoiled += 1
            return
        comparable = {
            name: times
            for name, times in timed.items()
            if isinstance(times, TrialTimes) and not self._other_steps(name, times, before)
        }
        self.rounds.append(_round(before, after, comparable))
        self.turns += turns

    def _original(self, number: int) -> TrialTimes | NoTimes:
        run = self._run(ORIGINAL, f"round {number}, as it is")
        self.original.append(run)
        return run.times

    def _variant(self, variant: Variant, number: int, before: TrialTimes) -> TrialTimes | NoTimes:
        run = self._run(variant, f"round {number}, {variant.name}")
        own = self.tried.setdefault(variant.name, [])
        own.append(run)
        why = run.times.why if isinstance(run.times, NoTimes) else ""
        if not any(one.error for one in self.original):  # else it fails as it is, too
            why = run.error or why
        if why:
            self.why[variant.name] = why if len(own) == 1 else f"run {len(own)} failed: {why}"
        return self._per_examples(variant, run.times, before)

    def _per_examples(
        self, variant: Variant, times: TrialTimes | NoTimes, original: TrialTimes
    ) -> TrialTimes | NoTimes:
        """Return a variant's figures for as many examples as a step as it is has, as its batches show."""
        if isinstance(times, NoTimes):
            return times
        ratio = examples_ratio(times, original) or self.examples.get(variant.name)
        expected = self.examples.get(variant.name, variant.examples)
        if variant.examples != 1 and ratio is None:
            self.why[variant.name] = "the number of examples in its steps could not be seen"
        elif ratio not in (None, expected) and (variant.examples != 1 or self.done(variant.name)):
            self.why[variant.name] = _not_promised(variant, times, original)
        if ratio is None:
            return times
        self.examples.setdefault(variant.name, ratio)
        return per_examples(times, ratio)

    def _other_steps(self, name: str, times: TrialTimes, original: TrialTimes) -> bool:
        """Say whether a variant's steps are not those of the program as it is, and note it.

        Updates of the weights make them comparable; where these were not counted, the loop must be the same.
        """
        if times.counted and original.counted:
            return False
        if times.counted == original.counted and times.loop.source == original.loop.source:
            return False
        self.why[name] = "its steps cannot be compared: the updates of the weights could not be counted"
        return True

    def _take_turns(self, order: Sequence[Variant], number: int) -> bool:
        """Do the runs of a round at once, and say whether: where there is room, until that fails as it is."""
        self.ready = []
        if self.alone or self.at_once() < len(order):
            return False
        names = [variant.name for variant in order[1:-1]]
        self._tell(f"round {number}, as it is and with {', '.join(names)} by turns")
        runs = self.by_turns(order, self.enough, self.number + 1)
        self._note(runs)
        self.alone = bool(runs[0].error or runs[-1].error)
        self.ready = [] if self.alone else list(runs)
        return not self.alone

    def _run(self, variant: Variant, what: str) -> TrialRun:
        """Return a run that has taken its turns, or run now: one that failed beside others may not fail alone."""
        if self.ready:
            run = self.ready.pop(0)
            if not run.error or self.clock.left_s < self.clock.usual_s:
                return run
        self._tell(what)
        run = self.one(variant, self.enough, self.number + 1)
        self._note([run])
        return run

    def _tell(self, what: str) -> None:
        left = max(0.0, self.clock.left_s) / 60
        self.say(f"{what} ({left:.1f} of {self.clock.minutes:.1f} minutes left)")

    def _note(self, runs: Sequence[TrialRun]) -> None:
        self.number += len(runs)
        self.tries += runs
        for run in runs:
            self.clock.took(run.seconds)

    def with_both(self, name: str, other: str) -> int:
        """Return the number of rounds that have both variants."""
        return sum(name in one.variants and other in one.variants for one in self.rounds)

    def done(self, name: str) -> int:
        """Return the number of rounds that have a variant."""
        return self.with_both(name, name)

    def saving(self, name: str) -> Measured | None:
        """Return what was measured of a variant; None of one that failed in any of its runs."""
        if name in self.why:
            return None
        chances = max(1, len(self.tried.keys() - self.sets))
        rounds = statistics.wholes(self.rounds) if self.by_mean else self.rounds
        return statistics.saving(rounds, name, chances)

    def measured(self, names: Sequence[str]) -> Mapping[str, Measured]:
        """Return what was measured of each variant that has a figure."""
        found = {name: self.saving(name) for name in names}
        return {name: measured for name, measured in found.items() if measured is not None}


def _not_promised(variant: Variant, times: TrialTimes, original: TrialTimes) -> str:
    """Return why a variant whose steps have other examples than promised, or than before, has no figure."""
    seen = other_examples(times, original)
    if not seen and variant.examples != 1:
        return "the change does not reach the batches: a step has as many examples as without it"
    return f"its steps do not have the examples that were expected: {seen or 'their number varies'}"


def _round(before: TrialTimes, after: TrialTimes, timed: Mapping[str, TrialTimes]) -> Round:
    """Return what a round measured: by the blocks of its runs, and by all steady steps of each."""
    whole = Round(
        np.array([before.whole_ms]),
        np.array([after.whole_ms]),
        {name: np.array([times.whole_ms]) for name, times in timed.items()},
    )
    blocks = {name: times.blocks_ms for name, times in timed.items()}
    return Round(before.blocks_ms, after.blocks_ms, blocks, whole)
