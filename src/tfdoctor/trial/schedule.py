"""Which variants a round holds: each gets its first round before any gets its second, and so on up to three.

1. Where the time is too short for all, those that promise most come first, and those that change the model last:
   they begin when all others have had a first round and the time holds the further rounds of these, too. Nothing
   begins unless a second round still fits in, because one round alone gives no figure.
2. The changes that helped are tried together (`combining`).
3. What time is left makes the widest intervals narrower, again of those that promise most first.
"""

from collections.abc import Callable, Sequence

from tfdoctor.diagnosis.trials import Difference, Measured
from tfdoctor.terms.humanize import counted
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.variants import Variant

# Says whether a variant's weights became infinite or NaN, so that further rounds would time nothing of use.
Lost = Callable[[Variant], bool]
LEAST_ROUNDS, MOST_ROUNDS = 3, 12  # Rounds that a variant gets before others get more, and at most
NARROW = 0.02  # Half of an interval, in shares of the step, below which a variant needs no more rounds
CLEARLY_WORSE = -0.10  # Saving below which a variant is dropped after two rounds that agree
MOST_SPOILED = 3  # Rounds without a figure of the program as it is after which the trial ends


def shortage(runs: Runs, variants: Sequence[Variant]) -> str:
    """Return that the time allows fewer rounds than each variant is to get, and how much would; else ""."""
    each = "the change" if len(variants) == 1 else f"each of {counted(len(variants), 'change')}"
    fewest, needed = AROUND + 1, AROUND + len(variants)
    return runs.clock.shortage(
        f"{counted(LEAST_ROUNDS, 'round')} of {each}", LEAST_ROUNDS * needed, FEWEST_ROUNDS * fewest
    )


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


def first_rounds(runs: Runs, variants: Sequence[Variant], lost: Lost) -> None:
    """Give each variant its first rounds, as far as the time allows; `lost` ones get no more."""
    ordered = by_promise(variants)

    def waits(one: Variant) -> bool:
        return runs.done(one.name) < LEAST_ROUNDS and not _dropped(runs, one, lost)

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
    joining = later if later and _fit(runs, begun, later) else []
    return begun[: affordable - AROUND] + joining


def _fit(runs: Runs, begun: Sequence[Variant], later: Sequence[Variant]) -> bool:
    """Say whether the time holds the least rounds of those begun, and a figure for all that come later."""
    rest = [LEAST_ROUNDS - runs.done(one.name) for one in begun]
    rest += [max(1, FEWEST_ROUNDS - runs.done(one.name)) for one in later]
    return AROUND * max(rest) + sum(rest) <= runs.clock.affordable()


def narrow(runs: Runs, variants: Sequence[Variant], lost: Lost) -> None:
    """Run further rounds of the variants whose interval is too wide, until none is or the time is up."""
    alone = [one for one in variants if one.name not in runs.sets]
    while runs.spoiled < MOST_SPOILED:
        first_rounds(runs, alone, lost)  # where runs became shorter, there is time for more
        wide = [one for one in by_promise(variants) if _wide(runs, one, lost)]
        batch = wide[: max(0, runs.clock.affordable() - AROUND)]
        if not batch:
            return
        runs.round(batch)


def _wide(runs: Runs, variant: Variant, lost: Lost) -> bool:
    done, measured = runs.done(variant.name), runs.saving(variant.name)
    if measured is None or done >= MOST_ROUNDS or _dropped(runs, variant, lost):
        return False
    return (measured.high - measured.low) / 2 > NARROW


def _dropped(runs: Runs, variant: Variant, lost: Lost) -> bool:
    """Say whether a variant gets no more rounds: it failed, it trains no more, or it costs time.

    One that trains otherwise is timed to the end: whether that is a fault of the change is for the reader to judge.
    """
    if variant.name in runs.why:
        return True
    if runs.done(variant.name) >= FEWEST_ROUNDS and lost(variant):
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
