"""Which variants a round holds: each gets its first round before any gets its second, and so on up to three.

1. Where the time is too short for all, those that promise most come first, and those that change the model last:
   they begin when all others have had a first round and the time holds the further rounds of these, too. Nothing
   begins unless a second round still fits in, because one round alone gives no figure.
2. The changes that helped are tried together: those that helped alone are added one by one, the best first. A
   change stays when the set with it is faster than the set without: both run in the same rounds. Of changes that
   exclude each other, the faster one stays.
3. What time is left makes the widest intervals narrower, again of those that promise most first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tfdoctor.diagnosis import Beside, Difference, Measured, TrainingState, is_broken
from tfdoctor.source_code.splice import Declined
from tfdoctor.terms.humanize import counted
from tfdoctor.trial import statistics
from tfdoctor.trial.program import Variant
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.statistics import FEWEST_ROUNDS

# Makes one variant of several; raises Declined where they do not go together.
Join = Callable[[Sequence[Variant]], Variant]
Pairs = frozenset[frozenset[str]]  # Rules whose findings exclude each other
LEAST_ROUNDS, MOST_ROUNDS = 3, 12  # Rounds that a variant gets before others get more, and at most
NARROW = 0.02  # Half of an interval, in shares of the step, below which a variant needs no more rounds
CLEARLY_WORSE = -0.10  # Saving below which a variant is dropped after two rounds that agree
MOST_OF_SETS = 6  # Rounds of two sets, while the one with the change seems to be faster and that is not sure
MOST_WHOLE = 4  # Rounds of whole runs at most: each takes minutes, and two agree or do not
MOST_SPOILED = 3  # Rounds without a figure of the program as it is after which the trial ends


def shortage(runs: Runs, variants: Sequence[Variant]) -> str:
    """Return that the time allows fewer rounds than each variant is to get, and how much would; else ""."""
    rounds, many = LEAST_ROUNDS, counted(len(variants), "change")
    each = "the change" if len(variants) == 1 else f"each of {many}"
    if runs.whole:
        rounds, each = FEWEST_ROUNDS, "whole runs"
    done = int(runs.whole)  # the first whole run is part of the first round
    more, fewest = rounds * (AROUND + len(variants)) - done, FEWEST_ROUNDS * (AROUND + 1) - done
    return runs.clock.shortage(f"{counted(rounds, 'round')} of {each}", more, fewest)


def by_promise(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants in the order in which they get time.

    What the user named (patches, settings) comes first, for nobody else knows what it may save; then the report's
    changes by what they promise, those without a figure, and last those that change the model.
    """

    def promise(variant: Variant) -> float:
        if variant.patched or not variant.rules:
            return 1.0
        return variant.promised.share if variant.promised is not None else 0.0

    ordered = sorted(variants, key=promise, reverse=True)
    return sorted(ordered, key=lambda variant: bool(variant.model))


def first_rounds(runs: Runs, variants: Sequence[Variant]) -> None:
    """Give each variant its first rounds, as far as the time allows."""
    ordered = by_promise(variants)

    def waits(one: Variant) -> bool:
        return runs.done(one.name) < LEAST_ROUNDS and not _dropped(runs, one)

    while batch := _batch(runs, [*filter(waits, ordered)]):
        runs.round(batch)


def _batch(runs: Runs, waiting: Sequence[Variant]) -> list[Variant]:
    """Return the variants of the next round: new ones, or the next round of those begun."""
    affordable = runs.clock.affordable()
    if affordable <= AROUND or runs.spoiled >= MOST_SPOILED:
        return []
    keeping = [one for one in waiting if not one.model]
    first = keeping or waiting
    new = [one for one in first if not runs.done(one.name)]
    if batch := new[: max(0, affordable - AROUND - (AROUND + 1))]:  # and a second round of one
        return batch
    begun = [one for one in first if one not in new]
    begun.sort(key=lambda one: runs.done(one.name))
    later = [one for one in waiting if one.model] if keeping else []
    rest = [LEAST_ROUNDS - runs.done(one.name) for one in begun]  # and a figure for all that come later:
    rest += [max(1, FEWEST_ROUNDS - runs.done(one.name)) for one in later]
    fits = later and AROUND * max(rest) + sum(rest) <= affordable
    return begun[: affordable - AROUND] + (later if fits else [])


def narrow(runs: Runs, variants: Sequence[Variant]) -> None:
    """Run further rounds of the variants whose interval is too wide, until none is or the time is up."""
    alone = [one for one in variants if one.name not in runs.sets]
    while runs.spoiled < MOST_SPOILED:
        first_rounds(runs, alone)  # where runs became shorter, there is time for more
        wide = [
            one
            for one in by_promise(variants)
            if (measured := runs.saving(one.name)) is not None
            and runs.done(one.name) < MOST_ROUNDS
            and not _dropped(runs, one)
            and (measured.high - measured.low) / 2 > NARROW
        ]
        batch = wide[: max(0, runs.clock.affordable() - AROUND)]
        if not batch:
            return
        runs.round(batch)


def _dropped(runs: Runs, variant: Variant) -> bool:
    """Say whether a variant gets no more rounds: it failed, its weights are infinite or NaN, or it costs time.

    One that trains otherwise is timed to the end: whether that is a fault of the change is for the reader to judge.
    """
    if variant.name in runs.why:
        return True
    if runs.done(variant.name) >= FEWEST_ROUNDS and not runs.by_mean:  # without a part, it trains otherwise anyway
        trains = runs.training(variant)
        if trains and trains.state is TrainingState.NOT_FINITE:
            return True  # with a figure: how much shorter it makes the step is said beside that
    measured = runs.saving(variant.name)
    return measured is not None and (measured.difference is Difference.COSTS or is_clearly_worse(measured))


def is_clearly_worse(measured: Measured) -> bool:
    """Say whether all rounds cost so much that more of them would be a waste of time."""
    return max(measured.rounds) < CLEARLY_WORSE


def whole_rounds(runs: Runs, variants: Sequence[Variant]) -> None:
    """Run the rounds of whole runs that fit into the time: two or more, of those that promise most."""
    fit = (runs.clock.affordable() + 1) // FEWEST_ROUNDS - AROUND  # the first run is part of the first round
    ordered = sorted(variants, key=lambda one: -(one.promised_run.share if one.promised_run else 0.0))
    turn = ordered[: max(0, fit)]
    while turn and runs.spoiled < MOST_SPOILED:
        runs.round(turn)
        turn = [variant for variant in turn if variant.name not in runs.why]
        if runs.clock.affordable() < AROUND + len(turn) or len(runs.rounds) >= MOST_WHOLE:
            return


@dataclass(slots=True)
class Combination:
    """The changes that help together so far."""

    runs: Runs
    variants: Sequence[Variant]  # all, in the report's order: a set's name has this order
    join: Join
    rivals: Pairs = frozenset()
    kept: list[Variant] = field(default_factory=list)
    best: Variant | None = None  # all of them at once
    made: dict[str, Variant] = field(default_factory=dict)  # sets, by name
    beside: dict[str, Beside] = field(default_factory=dict)  # how a change did, by its name

    def add_what_helps(self) -> None:
        """Try to add what helps alone, unless that was tried before."""
        for variant in self._helped():
            if variant not in self.kept and variant.name not in self.beside:
                self._add(variant)

    def proved(self) -> tuple[Variant, ...]:
        """Return the variants that proved to help together; the best one alone where their set did not."""
        measured = self.runs.saving(self.best.name) if self.best else None
        saves = measured is not None and measured.difference is Difference.SAVES
        if self.best and saves and not is_broken(self.runs.training(self.best)):
            return tuple(self.kept)
        return tuple(self._helped()[:1])

    def _helped(self) -> list[Variant]:
        """Return the variants that save time and may be kept, the largest saving first."""
        found = [(one, self.runs.saving(one.name)) for one in self.variants if one.may_keep]
        saving = [(one, saves.share) for one, saves in found if saves and saves.difference is Difference.SAVES]
        right = [pair for pair in saving if not is_broken(self.runs.training(pair[0]))]
        return [one for one, _ in sorted(right, key=lambda pair: -pair[1])]

    def _add(self, variant: Variant) -> None:
        if self.best is None:
            self.kept, self.best = [variant], variant
            return
        excluded = [one for one in self.kept if self._exclude(one, variant)]
        left = [one for one in self.kept if one not in excluded]
        parts = [one for one in self.variants if one == variant or one in left]
        candidate = parts[0] if len(parts) == 1 else self._joined(parts)
        if candidate is None:
            return
        if len(parts) > 1:
            self.made[candidate.name] = candidate
            self.runs.sets.add(candidate.name)
        measured = _versus(self.runs, self.best, candidate)
        if measured is None:
            return
        self.beside[variant.name] = Beside(
            others=tuple(one.name for one in excluded or self.kept), instead=bool(excluded), measured=measured
        )
        # One of two that exclude each other must be chosen, so the faster one is; a change is added only where the
        # trial showed that it saves more.
        faster = measured.share > 0 if excluded else measured.difference is Difference.SAVES
        if faster and not is_broken(self.runs.training(candidate)):
            self.kept, self.best = parts, candidate

    def _exclude(self, one: Variant, other: Variant) -> bool:
        """Say whether two changes cannot be made together: by the diagnosis, or in the same lines."""
        pairs = (frozenset((a, b)) for a in one.rules for b in other.rules)
        if set(one.rules) & set(other.rules) or any(pair in self.rivals for pair in pairs):
            return True
        return self._joined([one, other]) is None

    def _joined(self, parts: Sequence[Variant]) -> Variant | None:
        try:
            return self.join(parts)
        except Declined:
            return None


def _versus(runs: Runs, best: Variant, candidate: Variant) -> Measured | None:
    """Run two variants in the same rounds; return what the second saves of the step of the first."""
    while runs.spoiled < MOST_SPOILED and not runs.why.keys() & {best.name, candidate.name}:
        done = runs.done(best.name, candidate.name)
        measured = statistics.against(runs.rounds, candidate.name, best.name)
        unsure = measured is not None and measured.difference is Difference.NONE and measured.share > 0
        needed = max(LEAST_ROUNDS - done, int(unsure and done < MOST_OF_SETS))
        if not needed or runs.clock.affordable() < needed * (AROUND + 2):
            break
        runs.round([best, candidate])
    return None if candidate.name in runs.why else statistics.against(runs.rounds, candidate.name, best.name)
