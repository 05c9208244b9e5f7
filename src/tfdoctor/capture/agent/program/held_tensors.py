"""What the tensors hold that are the same in every call of a graph: those that it captures, and its constants.

Looked at after the window: how many zeros are in a few rows of each matrix, and which kernels of depthwise
convolutions are a column times a row.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..process.declared import Foreign, Graph, GraphOperation

# Types of tensors that refer to something that changes: a variable, an iterator.
HANDLES = frozenset({"resource", "variant"})
DEEPEST = 8  # Functions that contain each other, at most

ROWS = 64  # Rows of a matrix to look at, evenly spread
# Values of a matrix worth a look: a product with 256 x 256 takes some 0.01 ms; and the most, which an accelerator
# has to copy.
FEWEST, MOST = 65_536, 250_000_000
MOST_CONSTANT = 20_000_000  # Values of a constant in the graph to look at: reading one copies it
STORED = {"float32": 4, "float64": 8}  # Bytes of a value, of the types of constants that are read
MOST_MATRICES = 32
MATRIX = 2  # The rank of a matrix

DEPTHWISE = "DepthwiseConv2dNative"
PASSING = frozenset({"Cast", "Identity"})
MOST_KERNEL = 65_536  # Values of a kernel to look at
KERNEL = 4  # The rank of a kernel: height, width, channels and multiplier
# Largest size of what a column times a row leaves of a kernel, relative to the kernel: then the second singular
# value is at most as large, relative to the first. Rounding to float32 leaves 1e-7, to bfloat16 4e-3.
TOLERANCE = 1e-4


def describe(graph: Graph, operations: Sequence[GraphOperation]) -> dict[str, object]:
    """Return what a graph with these operations holds, by the names of placeholders and constants.

    Of a matrix: the `share` of its zeros, the number of other values in its `fullest` row, and whether all of them
    are on the `diagonal` of a square one. Of a kernel: whether each channel is a column times a row (`separable`).
    """
    captured = list(held(graph))
    tensors = {name: tensor for tensor, name in captured}
    matrices = [(tensor, name) for tensor, name in captured if _is_matrix(tensor)][:MOST_MATRICES]
    constants = [op for op in operations if op.type == "Const" and _is_matrix(op.outputs[0])]
    values = [(name, tensor._numpy()) for tensor, name in matrices]  # no operation, which would be traced
    values += [(op.name, _stored(op)) for op in constants[: MOST_MATRICES - len(matrices)]]
    made = {op.name: op for op in map(_kernel, operations) if op is not None and _is_kernel(op.outputs[0].shape)}
    kernels = {name: tensors[name]._numpy() if name in tensors else _stored(op) for name, op in made.items()}
    return {
        "zeros": [_zeros(name, matrix) for name, matrix in values if matrix is not None],
        "kernels": [
            {"name": name, "separable": all(map(_is_separable, _channels(kernel)))}
            for name, kernel in kernels.items()
            if kernel is not None
        ],
        "captured": [name for _, name in captured],
    }


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


def _stored(op: GraphOperation) -> Foreign | None:
    """Return the values of a constant; None where they are not stored one by one."""
    tensor = op.outputs[0]
    count, kind = tensor.shape.num_elements() or 0, tensor.dtype.name
    if op.type != "Const" or kind not in STORED or count > MOST_CONSTANT:
        return None
    content = getattr(op.get_attr("value"), "tensor_content", b"")
    if len(content) != count * STORED[kind]:
        return None
    numpy: Foreign = sys.modules["numpy"]
    return numpy.frombuffer(content, kind).reshape(tensor.shape.as_list())


def _is_matrix(value: Foreign) -> bool:
    if value.shape.rank != MATRIX or not value.dtype.is_floating:
        return False
    return FEWEST <= (value.shape.num_elements() or 0) <= MOST


def _zeros(name: str, matrix: Foreign) -> dict[str, object]:
    rows, columns = matrix.shape
    stride = max(1, rows // ROWS)
    some = matrix[::stride] != 0
    each = some.sum(axis=1).tolist()
    own = [int(row[at * stride]) for at, row in enumerate(some)] if rows == columns else []
    return {
        "name": name,
        "share": 1.0 - sum(each) / (len(each) * columns),
        "fullest": max(each),
        "diagonal": bool(own) and sum(own) == sum(each),
    }


def _kernel(op: GraphOperation) -> GraphOperation | None:
    """Return what makes the kernel of a depthwise convolution; None of other operations."""
    if op.type != DEPTHWISE:
        return None
    source = op.inputs[1].op
    while source.type in PASSING:
        source = source.inputs[0].op
    return source


def _is_kernel(shape: Foreign) -> bool:
    count = (shape.num_elements() or 0) if shape.rank == KERNEL else 0
    return 0 < count <= MOST_KERNEL and min(shape.as_list()[:2]) > 1


def _channels(kernel: Foreign) -> Foreign:
    height, width, *_ = kernel.shape
    return kernel.astype("float64").reshape(height, width, -1).transpose(2, 0, 1)


def _is_separable(kernel: Foreign) -> bool:
    """Say whether a kernel is its column times its row through its largest value."""
    row, column = divmod(int(abs(kernel).argmax()), kernel.shape[1])
    largest = kernel[row, column]
    if not largest:
        return False
    left = kernel - kernel[:, column : column + 1] * kernel[row : row + 1] / largest
    return bool((left**2).sum() <= TOLERANCE**2 * (kernel**2).sum())
