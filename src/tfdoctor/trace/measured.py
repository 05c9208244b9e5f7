"""Divides a trace whose profiler ran on after the measured steps, so that the stack could be sampled."""

from dataclasses import replace

import numpy as np

from tfdoctor.trace.model import Line, Plane, Trace
from tfdoctor.trace.names import END_OF_WINDOW, SAMPLED

TWICE = 2  # The agent says when the measured steps end, and once more if it has let the profiler run on


def measured(trace: Trace) -> Trace:
    """Return the trace up to the end of the measured steps, with all of it as ``sampled``.

    An event of the host that goes on at that time is left out, as if the profiler had stopped then. A trace in
    which nothing follows the measured steps is returned as it is.
    """
    ends_ps = sorted(event.end_ps for event in trace.host_events(END_OF_WINDOW))
    sampled = any(True for _ in trace.host_events(SAMPLED))
    if not ends_ps or (len(ends_ps) < TWICE and not sampled):
        return trace
    end_ps = ends_ps[0]
    planes = tuple(
        replace(plane, lines=tuple(_until(line, plane, end_ps) for line in plane.lines)) for plane in trace.planes
    )
    return replace(trace, planes=planes, sampled=trace)


def _until(line: Line, plane: Plane, end_ps: int) -> Line:
    """Return the events of a line up to a time: of the host those that have ended, of a device those that began."""
    ends = line.start_ps + line.duration_ps
    held = ends <= end_ps if plane.name.startswith("/host:") else line.start_ps < end_ps
    if held.all() and not len(line.tasks_ps):
        return line
    position = np.where(held, held.cumsum() - 1, -1)
    return replace(
        line,
        kind=line.kind[held],
        start_ps=line.start_ps[held],
        duration_ps=line.duration_ps[held],
        stats=line.stats.moved(position),
        tasks_ps=line.tasks_ps[line.tasks_ps[:, 1] <= end_ps],
    )
