"""Which layer of the model a matmul or convolution belongs to, and which widths are given by the data."""

from collections.abc import Sequence

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import BACKPROP


def is_gradient(row: OperationTime) -> bool:
    """Say whether the operation belongs to the backward pass."""
    return BACKPROP.search(f"{row.name} {row.type}") is not None


def owner(row: OperationTime) -> str:
    """Return the owner of its weights: its layer, else its operation of the forward pass, else "".

    Matmuls of two activations (BatchMatMul) have no weights. The gradients of "dense/MatMul" are
    called "gradient_tape/dense/MatMul/MatMul_1".
    """
    if row.layer or ("Batch" not in row.type and not is_gradient(row)):
        return row.layer or row.name
    if GRADIENT_SCOPE not in row.name or "Batch" in row.type:
        return ""
    return row.name.replace(GRADIENT_SCOPE, "").rpartition("/")[0]


def heads(rows: Sequence[OperationTime]) -> frozenset[str]:
    """Return the owners of the last matmuls, whose width is given by the data, such as the number of classes.

    These are dense layers whose width no other matmul reads, and convolutions of whose width no other
    matmul reads a multiple (flattened, a width of 10 is read as 7 x 7 x 10; the last convolution of a network
    that makes images has as many channels as the images). Without the shapes of the weights the result is empty.
    """
    forward = [(row, row.kernel) for row in rows if row.kernel and not is_gradient(row)]
    depths = {(owner(row), kernel[-2]) for row, kernel in forward if len(kernel) > 1}
    last = []
    for row, kernel in forward:
        name, width = owner(row), kernel[-1]
        read = [depth for reader, depth in depths if reader != name]
        if row.type == "MatMul":
            may_be = width not in read
        else:  # a convolution of one pixel, or of the width of another layer
            known = set(kernel[:-2]) == {1} or len(depths) > 1
            may_be = row.type.startswith("Conv") and known and all(depth % width for depth in read)
        last += [name] if may_be else []
    return frozenset(last)
