"""The stack samples in traced steps as one table: a row has a place, and its samples as columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.step_time.breakdown import UNKNOWN, WORKING, working
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.recording.program import SeenPlace
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Trace
from tfdoctor.trace.intervals import pairs_of


@dataclass(frozen=True, slots=True, eq=False)
class SampleRow:
    """The samples of one place: (n,) each."""

    place: SeenPlace
    step: NDArray[np.int64]  # the position of the step
    steady: NDArray[np.bool_]  # the step is
    after: NDArray[np.bool_]  # the training call has returned
    part: NDArray[np.str_]  # the step's, as in Breakdown; UNKNOWN where a copy or a collective counts first
    amid: NDArray[np.bool_]  # after the first operation of the call, and before its last one

    def only(self, mask: NDArray[np.bool_]) -> Self:
        """Return some of the samples."""
        step, steady, after = self.step[mask], self.steady[mask], self.after[mask]
        return type(self)(self.place, step, steady, after, self.part[mask], self.amid[mask])


@dataclass(frozen=True, slots=True, eq=False)
class SampleTable:
    """All samples of the trainer's thread that lie in a traced step, also one that is traced for samples alone."""

    rows: tuple[SampleRow, ...]

    @classmethod
    def measure(cls, trace: Trace, sampled: SampledSteps, framework: Framework) -> Self:
        """Find the step of each sample, and what the trace shows at its time.

        Raises:
            Unavailable: the stack was not sampled, or the samples have no time in the trace.
        """
        record, steps, ran = sampled.python, sampled.steps, sampled.activity
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            raise Unavailable(
                "the stack samples have no time in the trace (an older recording, or TensorFlow before 2.5)"
            )
        starts, call_ends, ends = np.array([(s.start_ps, s.call_end_ps, s.end_ps) for s in steps.steps], np.int64).T
        device, steady = ran.of(Stage.DEVICE), np.array(steps.steady, bool)
        operations = pairs_of(device.within(one.start_ps, one.call_end_ps).bounds_ps for one in steps.steps)
        others = {Stage.DEVICE: device, Stage.INPUT: working(ran, Stage.INPUT), UNKNOWN: working(ran, *WORKING)}
        rows = []
        for place in record.places:
            times = times_of(place, began_ps)
            at = np.searchsorted(starts, times, side="right") - 1
            inside = (at >= 0) & (times < ends[at])
            times, at = times[inside], at[inside]
            after, (first, last) = times >= call_ends[at], operations[at].T
            part = np.where(after, str(Stage.BETWEEN), str(Stage.HOST))
            part = np.select([spans.holds(times) for spans in others.values()], [str(one) for one in others], part)
            rows.append(SampleRow(place, at, steady[at], after, part, (first < times) & (times < last)))
        return cls(tuple(rows))

    @property
    def steady_rows(self) -> tuple[SampleRow, ...]:
        """The samples in steady steps."""
        return tuple(row.only(row.steady) for row in self.rows)
