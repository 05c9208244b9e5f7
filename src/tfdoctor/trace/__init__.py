"""A trace as columns: planes hold lines, lines hold events.

The names below are imported when they are first used: the child that asks xprof needs this package, but not
NumPy, which takes longer to import than all the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdoctor.trace.intervals import Intervals
    from tfdoctor.trace.model import Event, EventType, Line, Plane, Trace

__all__ = ["Event", "EventType", "Intervals", "Line", "Plane", "Trace"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "intervals" if name == "Intervals" else "model"
    return getattr(import_module(f"{__name__}.{module}"), name)
