"""Whether a variant still trains the same: equal weights where they must be, or the losses beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis import TrainingMatch, TrainingState
from tfdoctor.trial.running import TrialRun
from tfdoctor.trial.times import TrainedState
from tfdoctor.trial.variants import Variant

EXAMPLES = 5
"""Losses that the report shows."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the program as it is does by the step at which weights are compared."""

    states: tuple[TrainedState, ...]

    @property
    def repeats(self) -> bool:
        """Whether its runs all have the same weights by then, so that another digest shows another training."""
        digests = {(state.step, state.digest) for state in self.states}
        return len(self.states) > 1 and len(digests) == 1 and None not in next(iter(digests))

    @property
    def spread(self) -> float | None:
        """The largest relative difference of a step's loss between two of its runs; None without losses."""
        return max(
            (
                apart
                for first in self.states
                for second in self.states
                if (apart := _apart(first, second)) is not None
            ),
            default=None,
        )


def reference(runs: Sequence[TrialRun]) -> Reference:
    """Return the reference of the runs of the program as it is."""
    return Reference(tuple(run.state for run in runs if run.state is not None))


def compare(  # noqa: PLR0911 - one case a state
    variant: Variant, runs: Sequence[TrialRun], original: Reference
) -> TrainingMatch:
    """Return how a variant's training compares with that of the program as it is."""
    if any(run.finite is False for run in runs):
        return TrainingMatch(state=TrainingState.NOT_FINITE)
    if variant.model:
        return TrainingMatch(state=TrainingState.CHANGED, why=variant.model)
    states = [run.state for run in runs if run.state is not None]
    if not states or not original.states:
        return TrainingMatch(
            state=TrainingState.UNKNOWN, why="no step at which the weights could be read"
        )
    mine, its = states[0], original.states[0]
    losses = tuple(zip(its.losses, mine.losses, strict=False))[:EXAMPLES]
    shown = tuple((a, b) for a, b in losses if a is not None and b is not None)
    same_step = mine.step == its.step
    if original.repeats and same_step and mine.digest == its.digest:
        return TrainingMatch(state=TrainingState.EQUAL, step=its.step, losses=shown)
    if original.repeats and same_step and variant.exact:
        return TrainingMatch(state=TrainingState.DIFFERENT, step=its.step, losses=shown)
    apart = _apart(its, mine)
    if apart is None:
        return TrainingMatch(
            state=TrainingState.UNKNOWN, why="the steps return no loss", step=its.step
        )
    return TrainingMatch(
        state=TrainingState.LOSSES,
        step=its.step,
        losses=shown,
        apart=apart,
        usual=original.spread,
    )


def _apart(first: TrainedState, second: TrainedState) -> float | None:
    """Return the largest relative difference of the losses of a step; None where there are none."""
    pairs = [
        (a, b)
        for a, b in zip(first.losses, second.losses, strict=False)
        if a is not None and b is not None
    ]
    return max((abs(a - b) / max(abs(a), abs(b), 1e-12) for a, b in pairs), default=None)
