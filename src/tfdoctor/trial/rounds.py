"""The rounds of a trial: the runs of each, in which order, and what they measured.

A round is: as it is, the variants, as it is. Every other round takes the variants in the opposite order (ABBA), so
that a machine that gets slower or faster favors none. Where the memory holds all runs of a round, they take turns
(`turns`) instead of following each other. Which variants a round holds is in `schedule`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import median

from tfdoctor.diagnosis.trials import Measured, TrainingMatch
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.trial import statistics, training
from tfdoctor.trial.clock import FIRST_RUN, LIMIT_FACTOR, LIMIT_S, Enough, TrialClock
from tfdoctor.trial.program import ORIGINAL, Variant
from tfdoctor.trial.running import Runner, TrialRun
from tfdoctor.trial.statistics import Round
from tfdoctor.trial.times import TrialTimes, examples_ratio, other_examples

AROUND = 2  # Runs of the program as it is in a round

Say = Callable[[str], object]


@dataclass(slots=True)
class Runs:
    """All runs of a trial so far: of steps, or whole ones, of which only the time to their end counts."""

    stage: Runner
    clock: TrialClock
    say: Say
    whole: bool = False
    by_mean: bool = False  # the mean over all steady steps is compared, not the typical step
    enough: Enough = FIRST_RUN
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

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Let Ctrl-C end the run that is going on.

        Raises:
            InterruptedTrialError: it came before a round had ended.
        """
        try:
            yield
        except KeyboardInterrupt as error:
            if not self.rounds:
                raise InterruptedTrialError("Nothing was measured before the interrupt.") from error
            self.interrupted = True

    def first(self) -> TrialRun:
        """Run the program as it is, before any round: the plan of all other runs follows from its step."""
        # Nobody knows how long a start is:
        self.enough = replace(self.enough, limit_s=max(LIMIT_S, self.clock.left_s))
        run = self._run(ORIGINAL, "first run, as it is")
        if run.times:
            step_s, call_s = run.times.loop.usual_s
            start_s = max(0.0, run.seconds - run.times.loop.covers_ms / 1e3)
            self.enough = Enough.of(step_s, call_s, start_s)
            self.clock.usual_s = start_s + self.enough.planned_s(step_s, call_s)
        return run

    def first_whole(self) -> None:
        """Run the program as it is, to its end: the first run of the first round.

        Raises:
            CaptureError: it fails, or takes longer than the time of the trial.
        """
        self.enough = Enough.whole(max(LIMIT_S, self.clock.left_s))
        run = self._run(ORIGINAL, "whole run, as it is")
        if run.error:
            raise CaptureError(
                f"The program cannot be timed from its start to its end as it is ({run.error}): run it by itself, "
                "or allow more with --minutes."
            )
        self.ready = [run]
        self.clock.usual_s = run.seconds
        self.enough = Enough.whole(LIMIT_FACTOR * run.seconds + LIMIT_S)

    def round(self, variants: Sequence[Variant]) -> None:
        """Run one round, as far as the time allows; without both runs as it is, it counts for nothing."""
        turn = list(variants)
        if len(self.rounds) % 2:
            turn.reverse()
        name = f"round {len(self.rounds) + 1}{' of whole runs' if self.whole else ''}"
        turns = self._take_turns([ORIGINAL, *turn, ORIGINAL], name)
        before = self._original(name)
        if not before:
            self.spoiled += 1
            return
        timed: dict[str, TrialTimes | None] = {}
        for variant in turn:
            # Time for this run, and the last as it is; a round of whole runs begins only where there is for all.
            if self.whole or self.ready or self.clock.left_s >= AROUND * self.clock.usual_s:
                timed[variant.name] = self._variant(variant, name, before)
        left = self.whole or self.ready or self.clock.left_s > 0
        after = self._original(name) if timed and left else None
        if not after:
            self.spoiled += 1
            return
        comparable = {
            name: times for name, times in timed.items() if times and not self._other_steps(name, times, before)
        }
        whole = Round(before.whole_ms, after.whole_ms, {name: one.whole_ms for name, one in comparable.items()})
        steps = {name: one.step_ms for name, one in comparable.items()}
        self.rounds.append(Round(before.step_ms, after.step_ms, steps, whole))
        self.turns += turns

    def times(self, run: TrialRun) -> TrialTimes | None:
        """Return the figures of a run that count here."""
        if not self.whole:
            return run.times
        return None if run.error or run.ineffective else TrialTimes.of_whole_run(run.seconds)

    def whole_ms(self, runs: Sequence[TrialRun]) -> float | None:
        """Return the median over runs of the whole run, or of the mean over all steady steps."""
        times = [times.whole_ms for run in runs if (times := self.times(run))]
        return median(times) if times else None

    def training(self, variant: Variant) -> TrainingMatch | None:
        """Return how the training of a variant compares with that of the program as it is; None before it ran."""
        own = self.tried.get(variant.name)
        return training.compare(variant, own, self.original) if own else None

    def _original(self, name: str) -> TrialTimes | None:
        run = self._run(ORIGINAL, f"{name}, as it is")
        self.original.append(run)
        return self.times(run)

    def _variant(self, variant: Variant, name: str, before: TrialTimes) -> TrialTimes | None:
        run = self._run(variant, f"{name}, {variant.name}")
        own, times = self.tried.setdefault(variant.name, []), self.times(run)
        own.append(run)
        why = run.ineffective if self.whole else run.why
        if self.whole or not any(one.error for one in self.original):  # else it fails as it is, too
            why = run.error or why
        if why:
            self.why[variant.name] = why if len(own) == 1 else f"run {len(own)} failed: {why}"
        return self._per_examples(variant, times, before) if times else None

    def _per_examples(self, variant: Variant, times: TrialTimes, original: TrialTimes) -> TrialTimes:
        """Return a variant's figures for as many examples as a step as it is has, as its batches show."""
        ratio = examples_ratio(times, original) or self.examples.get(variant.name)
        expected = self.examples.get(variant.name, variant.examples)
        if variant.examples != 1 and ratio is None:
            self.why[variant.name] = "the number of examples in its steps could not be seen"
        elif ratio not in (None, expected) and (variant.examples != 1 or self.done(variant.name)):
            seen = other_examples(times, original)
            if seen or variant.examples == 1:
                why = f"its steps do not have the examples that were expected: {seen or 'their number varies'}"
            else:
                why = "the change does not reach the batches: a step has as many examples as without it"
            self.why[variant.name] = why
        if ratio is None:
            return times
        self.examples.setdefault(variant.name, ratio)
        return replace(times, blocks_ms=times.blocks_ms / float(ratio), whole_ms=times.whole_ms / float(ratio))

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

    def _take_turns(self, order: Sequence[Variant], name: str) -> bool:
        """Do the runs of a round at once, and say whether: where there is room, until that fails as it is."""
        if self.whole:
            return False
        self.ready = []
        if self.alone or self.stage.at_once() < len(order):
            return False
        names = [variant.name for variant in order[1:-1]]
        self._tell(f"{name}, as it is and with {', '.join(names)} by turns")
        runs = self._note(self.stage.runs(order, self.enough))
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
        return self._note(self.stage.runs([variant], self.enough))[0]

    def _tell(self, what: str) -> None:
        left = max(0.0, self.clock.left_s) / 60
        self.say(f"{what} ({left:.1f} of {self.clock.minutes:.1f} minutes left)")

    def _note(self, runs: Sequence[TrialRun]) -> Sequence[TrialRun]:
        self.tries += runs
        for run in runs:
            self.clock.took(run.seconds)
        return runs

    def done(self, *names: str) -> int:
        """Return the number of rounds that have these variants."""
        return sum({*names} <= one.variants.keys() for one in self.rounds)

    def saving(self, name: str) -> Measured | None:
        """Return what was measured of a variant; None of one that failed in any of its runs."""
        if name in self.why:
            return None
        chances = max(1, len(self.tried.keys() - self.sets))
        rounds = statistics.wholes(self.rounds) if self.by_mean else self.rounds
        found = statistics.saving(rounds, name, chances)
        return replace(found, of_run=True) if found and self.whole else found
