"""The stretches of the trace that a device's figures cover: the steady steps, else the whole trace."""

from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device, spans, work_lines
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.intervals import pairs_of


class RoundUnit(StrEnum):
    """What a device's figures are per."""

    STEP = "step"  # the mean of the steady steps, scaled to the median step
    TRACE = "trace"  # the whole trace
    RUN = "run"  # of the compiled program with the most time


STEP, TRACE = RoundUnit.STEP, RoundUnit.TRACE


class SteadySteps(Record, eq=False):
    """The stretches (start, end), in ps, and how many training steps they hold.

    ``scale`` is Steps.usual_ms over the mean of these, so that figures sum to that step as
    those of Breakdown do. ``calls`` are the parts of the stretches inside the training call.
    """

    unit: RoundUnit
    stretches: tuple[tuple[int, int], ...]
    calls: Intervals
    rounds: int
    scale: float = 1.0
    why_no_steps: str = ""

    @classmethod
    def measure(cls, trace: Trace, device: Device, steps: Steps | Unavailable) -> Self:
        """Take the steps that are no outliers; without steps, from a GPU's first work to its last.

        Raises:
            Unavailable: there is neither a step nor any work of a GPU.
        """
        if isinstance(steps, Steps):
            return cls.of(steps)
        spans_by_line = [spans(line) for plane in trace.devices(DeviceKind.GPU) for line in work_lines(plane)]
        edges = [edge for line_spans in spans_by_line if line_spans for edge in line_spans.bounds_ps]
        if device.missing or not edges:
            raise Unavailable(str(device.missing or steps))
        whole = (min(edges), max(edges))
        return cls(TRACE, (whole,), Intervals((whole,)), 1, why_no_steps=str(steps))

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """Take the steps that are no outliers."""
        chosen = steps.steady_steps
        rounds = sum(step.calls for step in chosen)
        mean = sum(step.end_ps - step.start_ps for step in chosen) / PS_PER_MS / rounds
        return cls(
            STEP,
            tuple((step.start_ps, step.end_ps) for step in chosen),
            Intervals.union((step.start_ps, step.call_end_ps) for step in chosen),
            rounds,
            steps.usual_ms / mean if mean else 1.0,
        )

    @property
    def several_per_call(self) -> bool:
        """Whether one call holds several training steps already, as with ``steps_per_execution``."""
        return self.unit is STEP and self.rounds > len(self.stretches)

    def ms(self, work: Intervals) -> float:
        """Return how long something lasts, in ms per round."""
        starts, ends = pairs_of(self.stretches).T
        return self.scaled(int((work.before(np.maximum(starts, ends)) - work.before(starts)).sum()))

    def split_ms(self, work: Intervals) -> tuple[float, float]:
        """Return how long something lasts inside and outside of the training calls, in ms per round."""
        inside_ms = self.ms(work & self.calls)
        return inside_ms, max(0.0, self.ms(work) - inside_ms)

    def scaled(self, ps: int) -> float:
        """Return ps, summed over the stretches, as ms per round."""
        return ps / PS_PER_MS / self.rounds * self.scale

    @property
    def round_ms(self) -> float:
        """The round itself: the step (Steps.usual_ms), or the length of the trace."""
        return self.scaled(sum(end - start for start, end in self.stretches))

    def holds(self, times_ps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (n,) whether a time lies in one of the stretches."""
        return Intervals(self.stretches).holds(times_ps)
