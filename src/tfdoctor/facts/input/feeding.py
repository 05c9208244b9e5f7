"""When Session.run prepares what it is fed, and how much of that each array takes."""

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import WIDTHS
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.trainer import is_named, trainers
from tfdoctor.recording.program import FedArgument
from tfdoctor.trace import Intervals, Line
from tfdoctor.trace.names import SESSION_RUN

SLOWEST_BYTES_PER_MS = 0.5e6
"""Bytes read and written per ms, 0.5 GB/s, at the least: a copy to memory that the system provides page by page ran
at 12 GB/s on two cores of an EPYC, and at 3 GB/s while other programs used both. So small arrays get none of the
time of Python's own work in Session.run, 0.1 to 0.4 ms."""


def feeding(lines: Iterable[Line], steps: Steps) -> Intervals:
    """Return the time from the beginning of each step's Session.run until it starts the graph.

    Raises:
        Unavailable: the trace does not show when graphs start.
    """
    started = [
        line.start_ps[is_named(line, SESSION_RUN.__eq__)] for line in trainers(line for line in lines if len(line))
    ]
    starts = np.sort(np.concatenate(started)) if started else np.zeros(0, np.int64)
    spans = []
    for step in steps.steps:
        first = int(starts.searchsorted(step.start_ps))
        if first < len(starts) and starts[first] < step.call_end_ps:
            spans.append((step.start_ps, int(starts[first])))
    if not spans:
        raise Unavailable("the trace does not show how Session.run converts what it is fed")
    return Intervals.union(spans)


def parts_of(arrays: Sequence[FedArgument], feeding_ms: float) -> list[float]:
    """Divide the time by the bytes that are read and written for each array, in ms per step.

    Raises:
        Unavailable: a list is fed as well, whose conversion does not show beside that of arrays.
    """
    if any(array.kind == "python" for array in arrays):
        raise Unavailable("Session.run is fed lists beside arrays, and the trace does not tell their times apart")
    moved = [_moved(array) for array in arrays]
    total = sum(moved)
    return [min(feeding_ms * part / total, part / SLOWEST_BYTES_PER_MS) if part else 0.0 for part in moved]


def _moved(array: FedArgument) -> float:
    """Return the bytes that a cast reads and writes, or a copy; 0 for types without a fixed width."""
    taken, given = (WIDTHS.get(dtype, 0) for dtype in (array.dtype, array.fed_as or array.dtype))
    return prod(array.shape) * (taken + given) if taken and given else 0
