"""What the host's threads did while no device worked: the events of host time and of the time between steps."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.breakdown import WORKING, Breakdown, working
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Line, Trace

SAMPLED_STEPS = 5  # Steady steps that are read: events of every step alike show in a few
# What follows the type of an event: "EagerLocalExecute: __inference_step_12".
AFTER_COLON = re.compile(r"(?<!:):(?!:).*", re.DOTALL)


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
        calls = Intervals.union((step.start_ps, step.call_end_ps) for step in chosen)
        pauses = Intervals.union((step.call_end_ps, step.end_ps) for step in chosen)
        parts = {stage: part - working(activity, *WORKING) for stage, part in
                 ((Stage.HOST, calls), (Stage.BETWEEN, pauses))}  # fmt: skip
        return cls({stage: _events(lines, part, breakdown[stage]) for stage, part in parts.items()})


def _events(lines: Iterable[Line], part: Intervals, part_ms: float) -> tuple[PartEvent, ...]:
    """Return the time of the innermost events within a part that takes ``part_ms`` per step."""
    if not part:
        return ()
    edges = np.stack((part.starts_ps, part.ends_ps), axis=1).astype(np.float64).reshape(-1)
    lengths = np.diff(edges, prepend=edges[:1])
    lengths[::2] = 0.0  # between two stretches no time of the part passes
    passed = np.cumsum(lengths)  # of the part, at each edge
    times: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        for kind, start, end in _innermost(line, *part.bounds_ps):
            first, last = np.interp((start, max(start, end)), edges, passed)
            name = AFTER_COLON.sub("", line.types[kind].name)
            times[name, line.name.partition("/")[0]] += float(last - first)
    scale = part_ms / part.total
    events = (PartEvent(name, thread, scale * ps) for (name, thread), ps in times.items() if ps)
    return tuple(sorted(events, key=lambda event: (-event.ms, event.name, event.thread)))


def _innermost(line: Line, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (kind, start, end) of the stretches in which an event is the innermost of its thread, in ps."""
    stack: list[tuple[int, int]] = []  # (kind, end) of the events under way
    now = start
    ends = line.start_ps + line.duration_ps
    rows = np.flatnonzero((line.start_ps < end) & (ends > start))
    events = zip(line.start_ps[rows].tolist(), line.kind[rows].tolist(), ends[rows].tolist(), strict=True)
    for starts, kind, ends_at in (*events, (end, -1, end)):  # the last one ends what is under way
        begins = max(starts, start)
        while stack and (kind < 0 or stack[-1][1] <= begins):
            inner, until = stack.pop()
            yield inner, now, until
            now = max(now, until)
        if stack:
            yield stack[-1][0], now, begins
        now = begins
        stack.append((kind, min(ends_at, stack[-1][1] if stack else end)))
