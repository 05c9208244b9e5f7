"""The operations that more threads would share, and how many threads they have now."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import LARGE, Operations
from tfdoctor.facts.steps.steps import Steps, StepSpans
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.verdict import Bound, Effect, Stage

# FLOPs of a call from which TensorFlow divides a matmul or convolution: about 0.1 ms on one core.
FLOP = 2_000_000.0


@dataclass(frozen=True, slots=True)
class DivisibleWork:
    """Matmuls and convolutions, and operations on large tensors, which TensorFlow would divide among threads.

    ``beside`` has the mean number of operations at work while an operation ran, by its name.
    """

    rows: tuple[OperationTime, ...]
    beside: dict[str, float]

    @classmethod
    def measure(cls, activity: Activity, operations: Operations, steps: Steps) -> Self:
        """Compare each operation's time with its share of the wall time, which operations at once divide."""
        work = activity.stages.get(Stage.DEVICE)
        if work is None or not len(work.label):
            raise Unavailable("the trace contains no operation")
        inside = StepSpans.of(steps).holds(work.start_ps)
        size, label = len(work.labels), work.label[inside]
        own = np.bincount(label, (work.end_ps - work.start_ps)[inside], size)
        wall = np.bincount(label, work.attributed_ps()[inside], size)
        beside = {ran: float(own[at] / wall[at]) for at, (_, _, ran) in enumerate(work.labels) if wall[at] > 0}
        rows = tuple(
            row
            for row in operations.rows
            if ((row.flops or 0.0) >= FLOP if row.is_matrix else (row.nbytes or 0.0) >= LARGE)
        )
        return cls(rows, {row.name: max(beside.get(ran, 1.0) for ran in row.ran) for row in rows})

    def effects(self, limit: float, cores: float) -> tuple[Effect, ...]:
        """Return that each operation takes what cores beyond its present threads leave of its time: a ceiling."""
        scales = {row.name: min(1.0, limit * self.beside[row.name] / cores) for row in self.rows}
        return tuple(row.scaled(scales[row.name], Bound.AT_MOST) for row in self.rows if row.ms)
