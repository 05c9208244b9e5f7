"""A trace as columns: planes hold lines, lines hold events."""

from tfdoctor.trace.intervals import Intervals
from tfdoctor.trace.model import Line, Plane, Trace

__all__ = ["Intervals", "Line", "Plane", "Trace"]
