"""What a graph that was traced unseen shows of its function: whether it trains, and which graphs it calls."""

from __future__ import annotations

from ..process.objects import BODIES, LOOPS, TRAINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import ConcreteFunction, Graph
    from ..process.objects import Marks

# How the names of operations begin that a GradientTape made while a function was traced.
GRADIENTS = "gradient_tape/"


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
    body = type(graph).__name__ == "WhileBodyFuncGraph" and not graph.name.endswith("_rewritten")
    return body or graph.name.startswith(BODIES)


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
