"""Whether a variant still trains the same: equal weights where they must be, or the losses beside each other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tfdoctor.diagnosis.trials import TrainingMatch, TrainingState
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.record import Record
from tfdoctor.trial.program import Variant
from tfdoctor.trial.times import NoTimes, TrainedState, TrialTimes, other_examples
from tfdoctor.trial.trial_run import TrialRun

EXAMPLES = 5  # Losses that the report shows
# An exact change moves the losses by more than this many times what two runs as it is differ by, and by at least
# this share: chance does not, even though the most of few pairs of runs is itself by chance.
FAR, LEAST_APART = 10.0, 0.01

# From good to bad: of several runs, the worst one is told.
WORSE = (
    TrainingState.EQUAL,
    TrainingState.LOSSES,
    TrainingState.CHANGED,
    TrainingState.UNKNOWN,
    TrainingState.DIFFERENT,
    TrainingState.NOT_FINITE,
)


class Reference(Record):
    """What the program as it is does by the step at which weights are compared."""

    states: tuple[TrainedState, ...]
    finite: bool = True  # its own weights do not become infinite or NaN
    times: TrialTimes | NoTimes | None = None  # of one of its runs that has figures

    @property
    def repeats(self) -> bool:
        """Whether its runs all have the same weights by then, so that another digest shows another training."""
        digests = {(state.step, state.digest) for state in self.states}
        return len(self.states) > 1 and len(digests) == 1 and None not in next(iter(digests))

    @property
    def spread(self) -> float | None:
        """The largest relative difference of a step's loss between two of its runs; None without losses of two."""
        pairs = (_apart(first, second) for first, second in combinations(self.states, 2))
        return max((apart for apart in pairs if apart is not None), default=None)


def reference(runs: Sequence[TrialRun]) -> Reference:
    """Return the reference of the runs of the program as it is."""
    states = tuple(run.state for run in runs if run.state is not None)
    times = next((run.times for run in runs if isinstance(run.times, TrialTimes)), None)
    return Reference(states, all(run.finite is not False for run in runs), times)


def compare(variant: Variant, runs: Sequence[TrialRun], originals: Sequence[TrialRun]) -> TrainingMatch:
    """Return how a variant's training compares with that of the program as it is: the worst of its runs."""
    original = reference(originals)
    matches = [_compare(variant, run, original) for run in runs]
    worst = max(matches, key=lambda match: (WORSE.index(match.state), match.apart or 0.0))
    return _reordered(worst, reference(runs)) if variant.reorders else worst


def _reordered(found: TrainingMatch, own: Reference) -> TrainingMatch:
    """Lay other weights to another order of random numbers, where a variant's own runs differ just as much.

    The program as it is repeats, so a change whose runs repeat too, or are far nearer to each other than to it,
    does something else.
    """
    if found.state is not TrainingState.DIFFERENT or own.repeats:
        return found
    if _far(found.apart, own.spread):
        return found
    return replace(found, state=TrainingState.REORDERED, own=own.spread)


def _compare(variant: Variant, run: TrialRun, original: Reference) -> TrainingMatch:
    """Return how one run compares with those of the program as it is."""
    mine, its = run.state, next(iter(original.states), None)
    told_by_weights = variant.exact and original.repeats
    if original.finite and (run.finite is False or (mine and its and _lost(its, mine))):
        return TrainingMatch(state=TrainingState.NOT_FINITE)
    # Of what must not change them, the weights tell that the batch is another one.
    other_batch = "" if told_by_weights else other_examples(run.times, original.times)
    if changed := variant.model or other_batch:
        return TrainingMatch(state=TrainingState.CHANGED, why=changed)
    if mine is None or its is None:
        why = "no step at which the weights could be read"
        return TrainingMatch(state=TrainingState.UNKNOWN, why=why)
    read = original.repeats and mine.step == its.step and mine.digest is not None
    same = mine.digest == its.digest if read else None
    if same is None or not (same or variant.exact):
        differ = f"the weights differ after {its.step} steps, and there are no losses to compare"
        why = "no loss was returned after the same steps" if same is None else differ
        found = _by_losses(mine, its, original.spread, why)
        return _far_apart(variant, found) if same is None else found
    losses = tuple(_pairs(its, mine)[:EXAMPLES])
    if same:
        return TrainingMatch(state=TrainingState.EQUAL, step=its.step, losses=losses)
    apart = _apart(its, mine)
    return TrainingMatch(state=TrainingState.DIFFERENT, step=its.step, losses=losses, apart=apart)


def _by_losses(mine: TrainedState, its: TrainedState, usual: float | None, why: str) -> TrainingMatch:
    """Return how losses compare; without any, unknown because ``why``."""
    apart = _apart(its, mine)
    if apart is None:
        return TrainingMatch(state=TrainingState.UNKNOWN, why=why, step=its.step)
    return TrainingMatch(
        state=TrainingState.LOSSES,
        step=its.step,
        losses=tuple(_pairs(its, mine)[:EXAMPLES]),
        apart=apart,
        usual=usual,
    )


def _far_apart(variant: Variant, found: TrainingMatch) -> TrainingMatch:
    """Say so where a change that must not affect the weights moves the losses more than chance does."""
    if not variant.exact or variant.reorders or not _far(found.apart, found.usual):
        return found
    return replace(
        found,
        state=TrainingState.UNKNOWN,
        why=(
            f"the losses differ by {percent(found.apart)} from those of the program as it is, "
            f"whose own runs differ by {percent(found.usual)}, and this change should not affect them"
        ),
    )


def _far(apart: float | None, usual: float | None) -> bool:
    """Say whether losses differ more than runs of one program do by chance."""
    return apart is not None and usual is not None and apart > max(FAR * usual, LEAST_APART)


def _pairs(first: TrainedState, second: TrainedState) -> list[tuple[int, float, float]]:
    """Return the losses after the same steps, where both have one that is a finite number."""
    return [
        (step, loss, second.losses[step])
        for step, loss in first.losses.items()
        if step in second.losses and math.isfinite(loss) and math.isfinite(second.losses[step])
    ]


def _lost(its: TrainedState, mine: TrainedState) -> bool:
    """Say whether a loss is infinite or NaN where that of the program as it is is not."""
    return any(
        math.isfinite(loss) and not math.isfinite(mine.losses.get(step, 0.0)) for step, loss in its.losses.items()
    )


def _apart(first: TrainedState, second: TrainedState) -> float | None:
    """Return the largest relative difference of the losses after a step; None where there are none."""
    pairs = _pairs(first, second)
    return max((abs(a - b) / max(abs(a), abs(b), 1e-12) for _, a, b in pairs), default=None)
