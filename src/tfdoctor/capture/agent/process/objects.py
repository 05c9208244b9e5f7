"""Objects of the user's: notes on them, what structures of them hold, and whether traced graphs train."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from .declared import ConcreteFunction, Graph

    T = TypeVar("T")
    Notes = dict[int, T]  # by the id of the object
    Marks = dict[str, bool]

TRAINS, LOOPS = "_tfdoctor_trains", "_tfdoctor_loops"  # It takes gradients; it does so inside a loop of its own
# What AutoGraph makes of `for x in dataset`, by the names of the functions that tf.data traces.
BODIES = ("Dataset_reduce", "Dataset_scan")
# How the names of operations begin that a GradientTape made while a function was traced.
GRADIENTS = "gradient_tape/"


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
        if _is_loop(graph):
            marks[LOOPS] = True
        outer = getattr(graph, "outer_graph", None)
        if not hasattr(outer, "outer_graph"):
            break  # beyond it is the eager world's own empty graph
        graph = outer
    return marks, graph


def concrete(function: object) -> list[ConcreteFunction]:
    """Return what a tf.function was traced to; asking TensorFlow could trace it once more."""
    cache = getattr(function, "_function_cache", None)
    return list(cache.values()) if cache is not None else []


def marks_of(graph: Graph, memory: dict[int, Marks]) -> Marks:
    """Return the marks of a traced graph: whether it takes gradients, and whether in a loop of its own."""
    if id(graph) in memory:
        return memory[id(graph)]
    marks = memory[id(graph)] = {}
    if any(op.name.startswith(GRADIENTS) for op in graph.get_operations()):
        marks[TRAINS] = True
    for inner in _inner(graph):
        inner_marks = marks_of(inner, memory)
        marks.update(inner_marks)
        if TRAINS in inner_marks and _is_loop(inner):
            marks[LOOPS] = True
    return marks


def _is_loop(graph: Graph) -> bool:
    """Say whether this is the body of a loop, and not what a gradient through a loop made of one."""
    name: str = getattr(graph, "name", "")
    body = type(graph).__name__ == "WhileBodyFuncGraph" and not name.endswith("_rewritten")
    return body or name.startswith(BODIES)


def _inner(graph: Graph) -> list[Graph]:
    """Return the graphs of the functions that a graph calls; some have none in Python."""
    functions = getattr(graph, "_functions", {}).values()
    graphs = (getattr(function, "graph", None) for function in functions)
    return [inner for inner in graphs if inner is not None]


def with_inner(graph: Graph) -> list[Graph]:
    """Return a graph and all those inside it."""
    graphs: dict[int, Graph] = {}
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        if id(inner) not in graphs:
            graphs[id(inner)] = inner
            waiting.extend(_inner(inner))
    return list(graphs.values())
