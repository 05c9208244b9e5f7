"""The tensors that a graph takes from outside of it, with values that are the same in every call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..process.declared import Foreign, Graph

# Types of tensors that refer to something that changes: a variable, an iterator.
HANDLES = frozenset({"resource", "variant"})
DEEPEST = 8  # Functions that contain each other, at most


def held(graph: Graph) -> Iterator[tuple[Foreign, str]]:
    """Yield each tensor with a value that a graph captured, and the name of its placeholder."""
    for outer, inner in getattr(graph, "captures", ()):
        value = _value(outer)
        if value is not None and value.dtype.name not in HANDLES:
            yield value, inner.op.name


def _value(tensor: Foreign, depth: int = 0) -> Foreign | None:
    """Return the eager tensor behind a capture: that of a function within another is the outer's placeholder."""
    if hasattr(tensor, "_numpy"):
        return tensor
    captures = getattr(getattr(tensor, "graph", None), "captures", ()) if depth < DEEPEST else ()
    outer = next((outer for outer, inner in captures if inner is tensor), None)
    return None if outer is None else _value(outer, depth + 1)
