"""Whether a variant still trains the same: equal weights where they must be, or the losses beside each other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tfdoctor.diagnosis.trials import TrainingMatch, TrainingState
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.record import Record
from tfdoctor.trial.program import Variant
from tfdoctor.trial.times import TrainedState, TrialTimes, other_examples
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
    times: TrialTimes | None = None  # of one of its runs that has figures

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
    times = next((run.times for run in runs if run.times), None)
    return Reference(states, all(run.finite is not False for run in runs), times)


def compare(variant: Variant, runs: Sequence[TrialRun], originals: Sequence[TrialRun]) -> TrainingMatch:
    """Return how a variant's training compares with that of the program as it is: the worst of its runs."""
    original = reference(originals)
    matches = [_compare(variant, run, original) for run in runs]
    worst = max(matches, key=lambda match: (WORSE.index(match.state), match.apart or 0.0))
    own = reference(runs)
    # The program as it is repeats, so a change whose runs repeat too, or are far nearer to each other than to it,
    # does something else; other weights of one whose runs differ just as much are another order of random numbers.
    other = worst.state is not TrainingState.DIFFERENT or own.repeats or _far(worst.apart, own.spread)
    if other or not variant.reorders:
        return worst
    return replace(worst, state=TrainingState.REORDERED, own=own.spread)


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
    return _by_state(variant, mine, its, original)


def _by_state(variant: Variant, mine: TrainedState, its: TrainedState, original: Reference) -> TrainingMatch:
    """Return how the weights of a run compare, or its losses where these do not tell."""
    read = original.repeats and mine.step == its.step and mine.digest is not None
    same = mine.digest == its.digest if read else None
    apart, usual = _apart(its, mine), original.spread
    told = TrainingMatch(state=TrainingState.LOSSES, step=its.step, losses=tuple(_pairs(its, mine)[:EXAMPLES]))
    if same:
        return replace(told, state=TrainingState.EQUAL)
    if same is False and variant.exact:
        return replace(told, state=TrainingState.DIFFERENT, apart=apart)
    if apart is None:
        differ = f"the weights differ after {its.step} steps, and there are no losses to compare"
        why = "no loss was returned after the same steps" if same is None else differ
        return replace(told, state=TrainingState.UNKNOWN, why=why)
    told = replace(told, apart=apart, usual=usual)
    if same is None and variant.exact and not variant.reorders and _far(apart, usual):
        why = (
            f"the losses differ by {percent(apart)} from those of the program as it is, "
            f"whose own runs differ by {percent(usual)}, and this change should not affect them"
        )
        return replace(told, state=TrainingState.UNKNOWN, why=why)
    return told


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
