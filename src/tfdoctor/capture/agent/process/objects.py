"""Objects of the user's: notes on them, what structures of them hold, and the marks of graphs that train."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from .declared import Graph

    T = TypeVar("T")
    Notes = dict[int, T]  # by the id of the object
    Marks = dict[str, bool]

TRAINS, LOOPS = "_tfdoctor_trains", "_tfdoctor_loops"  # It takes gradients; it does so inside a loop of its own
# What AutoGraph makes of `for x in dataset`, by the names of the functions that tf.data traces.
BODIES = ("Dataset_reduce", "Dataset_scan")


def keep(notes: Notes[T], thing: object, note: T) -> T:
    """Keep a note on an object until that is gone: `notes.get(id(thing))` finds it.

    A `WeakKeyDictionary` does the same by three calls of Python: those take longer in each step than all else that
    is done with the note, for a step of the user's empties the processor's caches.
    """
    if id(thing) not in notes:
        weakref.finalize(thing, notes.pop, id(thing), None).atexit = False
    notes[id(thing)] = note
    return note


def leaves(value: object) -> list[object]:
    """Return what a structure holds that is none itself, and not None, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [] if value is None else [value]
    return [leaf for part in value for leaf in leaves(part)]


def while_traced(graph: Graph | None) -> tuple[Marks, Graph | None]:
    """Return the marks for a gradient taken while a graph was traced, and the outermost graph around it."""
    marks = {TRAINS: True}
    while graph is not None:
        by_name = getattr(graph, "name", "").startswith(BODIES)
        if by_name or type(graph).__name__ == "WhileBodyFuncGraph":
            marks[LOOPS] = True
        outer = getattr(graph, "outer_graph", None)
        if not hasattr(outer, "outer_graph"):
            break  # beyond it is the eager world's own empty graph
        graph = outer
    return marks, graph
