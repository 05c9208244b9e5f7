"""Whether a variant still trains the same: equal weights where they must be, or the losses beside each other."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tfdoctor.diagnosis.trials import TrainingMatch, TrainingState
from tfdoctor.terms.humanize import percent
from tfdoctor.trial.program import Variant
from tfdoctor.trial.running import TrialRun
from tfdoctor.trial.times import TrainedState, other_examples

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


def compare(variant: Variant, runs: Sequence[TrialRun], originals: Sequence[TrialRun]) -> TrainingMatch:
    """Return how a variant's training compares with that of the program as it is: the worst of its runs."""
    matches = [_compare(variant, run, originals) for run in runs]
    worst = max(matches, key=lambda match: (WORSE.index(match.state), match.apart or 0.0))
    # The program as it is repeats, so a change whose runs repeat too, or are far nearer to each other than to it,
    # does something else; other weights of one whose runs differ just as much are another order of random numbers.
    if not variant.reorders or worst.state is not TrainingState.DIFFERENT or _repeats(runs):
        return worst
    spread = _spread(runs)
    return worst if _far(worst.apart, spread) else replace(worst, state=TrainingState.REORDERED, own=spread)


def _states(runs: Sequence[TrialRun]) -> list[TrainedState]:
    return [run.state for run in runs if run.state is not None]


def _repeats(runs: Sequence[TrialRun]) -> bool:
    """Say whether runs all have the same weights, so that another digest shows another training."""
    digests = {(state.step, state.digest) for state in _states(runs)}
    return len(_states(runs)) > 1 and len(digests) == 1 and None not in next(iter(digests))


def _spread(runs: Sequence[TrialRun]) -> float | None:
    """Return the largest relative difference of a step's loss between two runs; None without losses of two."""
    pairs = (_apart(first, second) for first, second in combinations(_states(runs), 2))
    return max((apart for apart in pairs if apart is not None), default=None)


def _compare(variant: Variant, run: TrialRun, originals: Sequence[TrialRun]) -> TrainingMatch:
    mine, its = run.state, next(iter(_states(originals)), None)
    finite = all(one.finite is not False for one in originals)  # its own weights become neither infinite nor NaN
    if finite and (run.finite is False or (mine and its and _lost(its, mine))):
        return TrainingMatch(state=TrainingState.NOT_FINITE)
    # Of what must not change them, the weights tell that the batch is another one.
    told_by_weights = variant.exact and _repeats(originals)
    times = next((one.times for one in originals if one.times), None)
    if changed := variant.model or ("" if told_by_weights else other_examples(run.times, times)):
        return TrainingMatch(state=TrainingState.CHANGED, why=changed)
    if mine is None or its is None:
        why = "no step at which the weights could be read"
        return TrainingMatch(state=TrainingState.UNKNOWN, why=why)
    return _by_state(variant, mine, its, originals)


def _by_state(
    variant: Variant, mine: TrainedState, its: TrainedState, originals: Sequence[TrialRun]
) -> TrainingMatch:
    """Return how the weights of a run compare, or its losses where these do not tell."""
    read = _repeats(originals) and mine.step == its.step and mine.digest is not None
    same = mine.digest == its.digest if read else None
    apart = _apart(its, mine)
    told = TrainingMatch(state=TrainingState.LOSSES, step=its.step, losses=tuple(_pairs(its, mine)[:EXAMPLES]))
    if same:
        return replace(told, state=TrainingState.EQUAL)
    if same is False and variant.exact:
        return replace(told, state=TrainingState.DIFFERENT, apart=apart)
    if apart is None:
        differ = f"the weights differ after {its.step} steps, and there are no losses to compare"
        why = "no loss was returned after the same steps" if same is None else differ
        return replace(told, state=TrainingState.UNKNOWN, why=why)
    usual = _spread(originals)
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
