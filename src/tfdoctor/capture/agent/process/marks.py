"""Marks on what a tf.function was traced to: whether it takes gradients, and whether in a loop of its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declared import Graph

    Marks = dict[str, bool]

TRAINS, LOOPS = "_tfdoctor_trains", "_tfdoctor_loops"  # It takes gradients; it does so inside a loop of its own
# What AutoGraph makes of `for x in dataset`, by the names of the functions that tf.data traces.
BODIES = ("Dataset_reduce", "Dataset_scan")


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
