"""What the profiler itself takes of a step, and the step's parts without it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.breakdown import PARTS, Breakdown
from tfdoctor.facts.steps.slowdown import slowdown
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import INPUT_THREAD

# Ms per event that the profiler takes at most. Called 100 times with and without it, the same function took 0.6 to
# 1.1 us of CPU time more for each event (an LSTM, 1,900 to 2,300 events a call, TensorFlow 2.21, a busy Xeon).
MOST_MS = 0.0011
LEAST = 0.1  # Share of a part that remains in any case: events are counted, and their cost is a mean


@dataclass(frozen=True, slots=True)
class TracingCost:
    """The parts of a step as traced and as untraced, in ms per training step (see Breakdown).

    Each event takes the profiler about as long, mostly before its start and after its end: its cost belongs to the
    part in which it begins. ``each_ms`` is that cost, from the difference between traced and untraced steps.
    What the events do not explain slows all parts alike. ``untraced`` sums to the untraced step.
    """

    traced: Mapping[str, float]
    untraced: Mapping[str, float]
    events: float  # per step, that delay it
    each_ms: float
    scale: float = 1.0  # of what the events do not explain

    @classmethod
    def measure(
        cls, trace: Trace, steps: Steps, activity: Activity, breakdown: Breakdown, recording: Recording
    ) -> Self:
        """Count the events that begin in each part of the steady steps.

        Raises:
            Unavailable: no step was timed without the profiler, or tracing did not slow the steps.
        """
        slower = slowdown(recording, steps)
        if slower <= 1.0:
            raise Unavailable("no steps were timed without tracing that took less time than the traced ones")
        return cls.of(breakdown.median, _events(trace, activity, SteadySteps.of(steps)), slower)

    @classmethod
    def of(cls, traced: Mapping[str, float], events: Mapping[str, float], slower: float) -> Self:
        """Take the cost of the events from the parts, then scale the parts to the untraced step."""
        step_ms, number = sum(traced.values()), sum(events.values())
        target = step_ms / slower
        each_ms = min(MOST_MS, (step_ms - target) / number) if number else 0.0
        without = {
            part: max(LEAST * part_ms, part_ms - each_ms * events.get(part, 0.0))
            for part, part_ms in traced.items()
        }
        scale = target / sum(without.values()) if target else 1.0
        untraced = {part: part_ms * scale for part, part_ms in without.items()}
        return cls(traced, untraced, number, each_ms, scale)

    def least(self, left_ms: float) -> float:
        """Return how short the rest of a step may be in truth, of which ``left_ms`` are predicted.

        Which part has the cost that the events do not explain is not known: the rest has it all at worst, and at
        least half of what is predicted remains.
        """
        if self.scale >= 1.0:
            return left_ms
        unexplained = (1.0 / self.scale - 1.0) * sum(self.untraced.values())
        return max(left_ms / 2, left_ms / self.scale - unexplained)

    @staticmethod
    def left(traced_ms: float, cost_ms: float) -> float:
        """Return the share of traced work, 0 to 1, that remains without the cost of its events."""
        return max(LEAST, 1.0 - cost_ms / traced_ms) if traced_ms else 1.0

    def kept(self, part: str) -> float:
        """Return the share of a part's traced time that remains without the profiler."""
        return self.untraced[part] / self.traced[part] if self.traced[part] else 1.0


def _events(trace: Trace, activity: Activity, steady: SteadySteps) -> dict[str, float]:
    """Count the events per step that begin in each part, without those of threads beside the step."""
    layers = {str(stage): activity.of(stage) for stage in Stage if stage in activity.stages}
    layers[Stage.INPUT] = layers.get(Stage.INPUT, Intervals()) | activity.wait
    counts = dict.fromkeys(map(str, PARTS), 0.0)
    for line in trace.host_lines:
        before = line.start_ps[steady.holds(line.start_ps)] - 1
        left = np.ones(len(before), bool)
        for part, spans in layers.items():
            inside = left & spans.holds(before)
            counts[part] += float(inside.sum())
            left &= ~inside
        if not line.name.startswith(INPUT_THREAD):
            called = left & steady.calls.holds(before)
            counts[Stage.HOST] += float(called.sum())
            counts[Stage.BETWEEN] += float((left & ~called).sum())
    return {part: number / steady.rounds for part, number in counts.items()}
