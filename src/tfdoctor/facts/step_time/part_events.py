"""What the host's threads did while no device worked: the events of host time and of the time between steps."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.breakdown import WORKING, Breakdown, working
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Line, Trace

SAMPLED_STEPS = 5
"""Steady steps that are read: events of every step alike show in a few."""


@dataclass(frozen=True, slots=True)
class PartEvent:
    """The innermost events of one name on the threads of one name, in ms per training step, summed over threads."""

    name: str
    thread: str
    ms: float


@dataclass(frozen=True, slots=True)
class PartEvents:
    """The events in the host's time, and in the time between steps, the longest first."""

    by_part: Mapping[str, tuple[PartEvent, ...]]

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity, breakdown: Breakdown) -> Self:
        """Read the first steady steps of the trace, scaled to the parts of the median step.

        Raises:
            Unavailable: the trace has no events of the host.
        """
        lines = [line for line in trace.host_lines if len(line)]
        if not lines:
            raise Unavailable("the trace has no events of the host's threads")
        chosen = steps.steady_steps[:SAMPLED_STEPS]
        busy = working(activity, *WORKING)
        calls = Intervals.union((step.start_ps, step.call_end_ps) for step in chosen)
        pauses = Intervals.union((step.call_end_ps, step.end_ps) for step in chosen)
        parts = {Stage.HOST: calls - busy, Stage.BETWEEN: pauses - busy}
        return cls({stage: _events(lines, part, breakdown[stage]) for stage, part in parts.items()})


def _events(lines: Iterable[Line], part: Intervals, part_ms: float) -> tuple[PartEvent, ...]:
    """Return the time of the innermost events within a part that takes ``part_ms`` per step."""
    if not part:
        return ()
    times: dict[tuple[str, str], float] = defaultdict(float)
    clock = _Clock.of(part)
    for line in lines:
        for kind, start, end in _innermost(line, *part.bounds_ps):
            name = _AFTER_COLON.sub("", line.types[kind].name)
            times[name, line.name.partition("/")[0]] += clock.between(start, end)
    scale = part_ms / part.total
    events = (PartEvent(name, thread, scale * ps) for (name, thread), ps in times.items() if ps)
    return tuple(sorted(events, key=lambda event: (-event.ms, event.name, event.thread)))


_AFTER_COLON = re.compile(r"(?<!:):(?!:).*", re.DOTALL)
"""What follows the type of an event: "EagerLocalExecute: __inference_step_12"."""


def _innermost(line: Line, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (kind, start, end) of the stretches in which an event is the innermost of its thread, in ps."""
    stack: list[tuple[int, int]] = []  # (kind, end) of the events under way
    now = start
    ends = line.start_ps + line.duration_ps
    for index in np.flatnonzero((line.start_ps < end) & (ends > start)).tolist():
        begins, kind = max(int(line.start_ps[index]), start), int(line.kind[index])
        while stack and stack[-1][1] <= begins:
            inner, until = stack.pop()
            yield inner, now, until
            now = max(now, until)
        if stack:
            yield stack[-1][0], now, begins
        now = begins
        stack.append((kind, min(int(ends[index]), stack[-1][1] if stack else end)))
    while stack:
        inner, until = stack.pop()
        yield inner, now, until
        now = max(now, until)


@dataclass(frozen=True, slots=True, eq=False)
class _Clock:
    """How much of a part has passed at a time: ``edges`` and ``passed`` have (2n,) ps for n stretches."""

    edges: NDArray[np.float64]
    passed: NDArray[np.float64]

    @classmethod
    def of(cls, part: Intervals) -> Self:
        edges = np.stack((part.starts_ps, part.ends_ps), axis=1).astype(np.float64).reshape(-1)
        lengths = np.diff(edges, prepend=edges[:1])
        lengths[::2] = 0.0  # between two stretches no time of the part passes
        return cls(edges, np.cumsum(lengths))

    def between(self, start: int, end: int) -> float:
        if end <= start:
            return 0.0
        first, last = np.interp((start, end), self.edges, self.passed)
        return float(last - first)
