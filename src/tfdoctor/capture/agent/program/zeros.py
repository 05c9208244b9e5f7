"""How many zeros are in the matrices that a graph captures or holds: in a few rows of each, after the window."""

from __future__ import annotations

from .outside_tensors import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from ..process.declared import Foreign, Graph, GraphOperation

    class MatrixZeros(TypedDict):
        """What some rows of a matrix hold; `share` is that of their zeros, 0 to 1."""

        name: str  # of its placeholder in the graph
        share: float
        fullest: int  # the largest number of other values in a row
        diagonal: bool  # whether all of them are on the diagonal of a square matrix


ROWS = 64  # Rows of a matrix to look at, evenly spread
# Values of a matrix worth a look: a product with 256 x 256 takes some 0.01 ms; and the most, which an accelerator
# has to copy.
FEWEST, MOST = 65_536, 250_000_000
MOST_CONSTANT = 20_000_000  # Values of a constant in the graph to look at: reading one copies it
WIDTHS = {"float32": 4, "float64": 8}  # Bytes of a value, of the types that Python reads

MOST_MATRICES = 32

MATRIX = 2  # The rank of a matrix


def describe(graph: Graph) -> list[MatrixZeros]:
    """Return the zeros of the matrices that a graph captured, or holds as constants."""
    matrices = [(matrix, name) for matrix, name in held(graph) if _is_matrix(matrix)]
    found = [_of(matrix, name) for matrix, name in matrices[:MOST_MATRICES]]
    made: list[GraphOperation] = getattr(graph, "get_operations", list)()
    constants = [op for op in made if op.type == "Const" and _is_matrix(op.outputs[0])]
    known = (_of_constant(op) for op in constants[: MOST_MATRICES - len(found)])
    return found + [zeros for zeros in known if zeros]


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
    each = [int(row.sum()) for row in some]
    own = [int(row[at * stride]) for at, row in enumerate(some)] if rows == columns else []
    return _described(name, each, columns, own)


def _of_constant(op: GraphOperation) -> MatrixZeros | None:
    """Return the zeros of a constant; None where its values are not stored one by one."""
    tensor = op.outputs[0]
    rows, columns = (int(size or 0) for size in tensor.shape.as_list())
    width = WIDTHS.get(tensor.dtype.name)
    value = op.get_attr("value")
    content = getattr(value, "tensor_content", b"")
    if width is None or rows * columns > MOST_CONSTANT or len(content) != rows * columns * width:
        return None
    view = memoryview(content)
    values = view.cast("f") if width == WIDTHS["float32"] else view.cast("d")
    stride = max(1, rows // ROWS)
    starts = range(0, rows * columns, stride * columns)
    some = [[each != 0 for each in values[start : start + columns]] for start in starts]
    own = [int(row[at * stride]) for at, row in enumerate(some)] if rows == columns else []
    return _described(op.name, [sum(row) for row in some], columns, own)


def _described(name: str, each: list[int], columns: int, own: list[int]) -> MatrixZeros:
    """Describe rows by the values in each that are not zero, and those on the diagonal."""
    return {
        "name": name,
        "share": 1.0 - sum(each) / (len(each) * columns),
        "fullest": max(each),
        "diagonal": bool(own) and sum(own) == sum(each),
    }
