"""Which variants a round holds: the time goes first to those that promise most.

1. Every variant gets its three rounds, those that promise most first. A variant begins only if its rounds fit
   into the time that is left: one round of each would show nothing of any.
2. The changes that helped are tried together (`combining`).
3. What time is left makes the widest intervals narrower, again of those that promise most first.
"""

from collections.abc import Callable, Sequence

from tfdoctor.diagnosis import Difference, Measured
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.variants import Variant

Broken = Callable[[Variant], bool]
"""Says whether a variant trains something else than it should."""

LEAST_ROUNDS, MOST_ROUNDS = 3, 12
"""Rounds that a variant gets before others get more, and at most."""

NARROW = 0.02
"""Half of an interval, in shares of the step, below which a variant needs no more rounds."""

CLEARLY_WORSE = -0.10
"""Saving below which a variant is dropped after two rounds that agree."""

MOST_SPOILED = 3
"""Rounds without a figure of the program as it is after which the trial ends."""


def by_promise(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants in the order in which they get time.

    What the user named (patches, settings) comes first, for nobody else knows what it may save; then the report's
    changes by what they promise, and those without a figure last.
    """

    def promise(variant: Variant) -> float:
        if variant.patched or not variant.rules:
            return 1.0
        return variant.promised.share if variant.promised is not None else 0.0

    return sorted(variants, key=promise, reverse=True)


def first_rounds(runs: Runs, variants: Sequence[Variant], broken: Broken) -> None:
    """Give each variant its first rounds, as far as the time allows; `broken` ones get no more."""
    ordered = by_promise(variants)
    while batch := _batch(runs, [one for one in ordered if _waits(runs, one, broken)]):
        runs.round(batch)


def _waits(runs: Runs, variant: Variant, broken: Broken) -> bool:
    """Say whether a variant still needs one of its first rounds."""
    return runs.done(variant.name) < LEAST_ROUNDS and not _dropped(runs, variant, broken)


def _batch(runs: Runs, waiting: Sequence[Variant]) -> list[Variant]:
    """Return the variants of the next round: those begun, and as many others as can get all their rounds."""
    affordable = runs.clock.affordable()
    if affordable <= AROUND or runs.spoiled >= MOST_SPOILED:
        return []
    begun = [one for one in waiting if runs.done(one.name)]
    batch = begun[: affordable - AROUND]
    for variant in waiting:
        if variant not in begun and LEAST_ROUNDS * (len(batch) + 1 + AROUND) <= affordable:
            batch.append(variant)
    alone = not runs.rounds and affordable >= FEWEST_ROUNDS * (AROUND + 1)
    return batch or (list(waiting[:1]) if alone else [])


def narrow(runs: Runs, variants: Sequence[Variant], broken: Broken) -> None:
    """Run further rounds of the variants whose interval is too wide, until none is or the time is up."""
    while runs.spoiled < MOST_SPOILED:
        wide = [one for one in by_promise(variants) if _wide(runs, one, broken)]
        batch = wide[: max(0, runs.clock.affordable() - AROUND)]
        if not batch:
            return
        runs.round(batch)


def _wide(runs: Runs, variant: Variant, broken: Broken) -> bool:
    done, measured = runs.done(variant.name), runs.saving(variant.name)
    if measured is None or done >= MOST_ROUNDS or _dropped(runs, variant, broken):
        return False
    return (measured.high - measured.low) / 2 > NARROW


def _dropped(runs: Runs, variant: Variant, broken: Broken) -> bool:
    """Say whether a variant gets no more rounds: it failed, it trains something else, or it costs time."""
    if variant.name in runs.why:
        return True
    if runs.done(variant.name) >= FEWEST_ROUNDS and broken(variant):
        return True  # with a figure: how much shorter it makes the step is said beside that
    measured = runs.saving(variant.name)
    if measured is None:
        return False
    return measured.difference is Difference.COSTS or is_clearly_worse(measured)


def is_clearly_worse(measured: Measured) -> bool:
    """Say whether all rounds cost so much that more of them would be a waste of time."""
    return max(measured.rounds) < CLEARLY_WORSE


def helps(measured: Measured | None) -> bool:
    """Say whether a variant was shown to save time."""
    return measured is not None and measured.difference is Difference.SAVES
