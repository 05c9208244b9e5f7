"""How many zeros are in the matrices that a graph captures: in a few rows of each, after the window has closed."""

from __future__ import annotations

from .held import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from .declared import Foreign, Graph

    class MatrixZeros(TypedDict):
        """What some rows of a matrix hold; `share` is that of their zeros, 0 to 1."""

        name: str  # of its placeholder in the graph
        share: float
        fullest: int  # the largest number of other values in a row
        diagonal: bool  # whether all of them are on the diagonal of a square matrix


ROWS = 64
"""Rows of a matrix to look at, evenly spread."""

FEWEST, MOST = 65_536, 250_000_000
"""Values of a matrix worth a look: a product with 256 x 256 takes some 0.01 ms; and the most, which
an accelerator has to copy."""

MOST_MATRICES = 32

MATRIX = 2
"""The rank of a matrix."""


def describe(graph: Graph) -> list[MatrixZeros]:
    """Return the zeros of the matrices that a graph captured."""
    matrices = [(matrix, name) for matrix, name in held(graph) if _is_matrix(matrix)]
    return [_of(matrix, name) for matrix, name in matrices[:MOST_MATRICES]]


def _is_matrix(value: Foreign) -> bool:
    """Say whether a tensor is a matrix of floats."""
    if value.shape.rank != MATRIX:
        return False
    values = value.shape.num_elements() or 0
    return bool(value.dtype.is_floating) and FEWEST <= values <= MOST


def _of(matrix: Foreign, name: str) -> MatrixZeros:
    rows, columns = matrix.shape.as_list()
    stride = max(1, rows // ROWS)
    some = matrix._numpy()[::stride] != 0  # no operation, which would be traced
    each = some.sum(axis=1)
    own = [int(row[at * stride]) for at, row in enumerate(some)] if rows == columns else []
    return {
        "name": name,
        "share": 1.0 - int(each.sum()) / some.size,
        "fullest": int(each.max()),
        "diagonal": bool(own) and sum(own) == int(each.sum()),
    }
