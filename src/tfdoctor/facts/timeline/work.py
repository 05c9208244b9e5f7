"""The events of one stage's work on one device, as columns."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace import EventType, Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The n events of one stage's work on one device.

    ``label`` indexes ``labels``, which are ("operation name", "operation type", "what ran") triples.
    """

    labels: tuple[tuple[str, str, str], ...]
    label: NDArray[np.int32]  # (n,)
    start_ps: NDArray[np.int64]  # (n,)
    end_ps: NDArray[np.int64]  # (n,)
    types: tuple[EventType, ...] = ()  # of each label

    def spans(self) -> Intervals:
        """Return when any of the events ran."""
        return Intervals.merged(self.start_ps, self.end_ps)

    def only(self, mask: NDArray[np.bool_]) -> Self:
        """Return the events that the (n,) ``mask`` selects."""
        return replace(self, label=self.label[mask], start_ps=self.start_ps[mask], end_ps=self.end_ps[mask])

    def attributed_ps(self) -> NDArray[np.float64]:
        """Return (n,) ps: events that overlap share the time equally, so the sum is that of the union."""
        n = len(self.label)
        times = np.concatenate((self.start_ps, self.end_ps))
        order = np.argsort(times, kind="stable")
        change = np.concatenate((np.ones(n), -np.ones(n)))[order]
        active = np.cumsum(change)[:-1]
        lengths = np.diff(times[order])
        share = np.where(active > 0, lengths / np.maximum(active, 1), 0.0)
        passed = np.empty(2 * n)
        passed[order] = np.concatenate(([0.0], np.cumsum(share)))
        return passed[n:] - passed[:n]


def tabulate(rows: list[tuple[tuple[str, str, str], EventType, int, int]]) -> Work:
    """Convert rows of (label, type, start, end) to columns."""
    types: dict[tuple[str, str, str], EventType] = {}
    for label, kind, _, _ in rows:
        types.setdefault(label, kind)
    at = {label: place for place, label in enumerate(types)}
    return Work(
        tuple(types),
        np.array([at[row[0]] for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        tuple(types.values()),
    )
