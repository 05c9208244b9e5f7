"""Work that recurs: the candidates for what a training step is."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.training_work import TrainingRole, TrainingWork
from tfdoctor.terms.kinds import StepSource

# Where steps that nobody marked are found: inside a graph, or from call to call.
GRAPH, CALL = StepSource.GRAPH_PERIOD, StepSource.REPEATED_CALL
Spans = NDArray[np.int64]  # (n, 2) starts and ends, in ps
Rows = NDArray[np.bool_]  # (m,) which of the operations of a TrainingWork
MOSTLY = 0.9  # Share of the rounds that must look alike: a last batch or an evaluation in between is tolerated


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """Whole rounds of something that trains, by their start, in ps.

    ``updates`` counts the operations of one round that certainly belong to an optimizer, ``activities``
    all that the trace shows, by distinct name; operations of nested rounds are left out.
    """

    source: StepSource  # GRAPH or CALL
    where: str  # "the loop `while` of `train_epoch`", for people
    starts_ps: NDArray[np.int64]  # (n,)
    ends_ps: NDArray[np.int64]  # (n,)
    updates: int
    activities: int
    call: str = ""  # the function that is called, for CALL

    def __len__(self) -> int:
        return len(self.starts_ps)

    @property
    def total_ps(self) -> int:
        """The total time of the rounds, in ps."""
        return int((self.ends_ps - self.starts_ps).sum())

    def takes_gradients(self, gradients: NDArray[np.int64]) -> bool:
        """Whether gradients are computed in it, round by round."""
        held = holding(gradients, np.stack((self.starts_ps, self.ends_ps), axis=1))
        return len(self) > 0 and int(held.sum()) >= MOSTLY * len(self)

    def contains(self, other: "Cycle") -> bool:
        """Whether the other's rounds lie in this one's, between its first and its last whole round."""
        size, others = (len(self), -self.total_ps), (len(other), -other.total_ps)
        if not len(self) or size >= others:
            return False
        begun = other.starts_ps[(other.starts_ps >= self.starts_ps[0]) & (other.starts_ps < self.ends_ps[-1])]
        latest = np.searchsorted(self.starts_ps, begun, side="right") - 1
        inside = np.count_nonzero(begun < self.ends_ps[latest])
        return len(begun) > 0 and bool(inside >= MOSTLY * len(begun))

    def keeps_step_with(self, other: "Cycle") -> bool:
        """Whether the rounds of the two alternate, as two halves of one step do."""
        few, many = sorted((self.starts_ps, other.starts_ps), key=len)
        if len(many) - len(few) > 1:
            return False
        place = np.searchsorted(many, few)
        return bool(np.all(np.diff(place) == 1))


def from_each_to_next(edges: NDArray[np.int64]) -> Spans:
    """Return (n - 1, 2) spans between (n,) edges."""
    return np.stack((edges[:-1], edges[1:]), axis=1)


def holding(times: NDArray[np.int64], spans: Spans) -> NDArray[np.bool_]:
    """Return (n,) which spans hold one of some times, or of some positions, which are sorted."""
    begin, end = times.searchsorted(spans).T
    return np.asarray(end > begin, np.bool_)


def cycle_of(source: StepSource, where: str, spans: Iterable[Spans], work: TrainingWork, rows: Rows) -> Cycle:
    """Return the rounds of these spans; ``rows`` are the operations of all rounds."""
    rounds = np.concatenate([np.zeros((0, 2), np.int64), *spans])
    starts, ends = rounds[np.argsort(rounds[:, 0], kind="stable")].T
    kinds = np.unique(work.kind[rows])
    updates = int(np.count_nonzero(work.role[kinds] & TrainingRole.UPDATE))
    return Cycle(source, where, starts, ends, updates, len(kinds))
