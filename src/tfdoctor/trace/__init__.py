"""A trace as columns: planes hold lines, lines hold events."""

from tfdoctor.trace.intervals import Intervals
from tfdoctor.trace.model import Event, EventType, Line, Plane, Trace

__all__ = ["Event", "EventType", "Intervals", "Line", "Plane", "Trace"]
