"""Which layer of the model a matmul or convolution belongs to, and whose widths the user chose."""

from collections.abc import Sequence

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.operations.operations import BACKPROP, OperationTime


def is_gradient(row: OperationTime) -> bool:
    """Say whether the operation belongs to the backward pass."""
    return BACKPROP.search(f"{row.name} {row.type}") is not None


def owner(row: OperationTime) -> str:
    """Return what its weights are known by: its layer, else its operation of the forward pass, else "".

    Products of two activations (BatchMatMul) have no weights. The gradients of "dense/MatMul" are
    called "gradient_tape/dense/MatMul/MatMul_1".
    """
    if row.layer or ("Batch" not in row.type and not is_gradient(row)):
        return row.layer or row.name
    if GRADIENT_SCOPE not in row.name or "Batch" in row.type:
        return ""
    return row.name.replace(GRADIENT_SCOPE, "").rpartition("/")[0]


def heads(rows: Sequence[OperationTime]) -> frozenset[str]:
    """Return the owners of the last products, whose units are the classes or whatever the data has.

    Those are dense layers whose width no other product reads, and convolutions of 1 x 1 of which no other
    product reads a multiple (flattened, a width of 10 is read as 7 x 7 x 10). Where the shapes of the weights are
    not known, none is.
    """
    known = [(owner(row), row.kernel) for row in rows if row.kernel and not is_gradient(row)]
    read = {(kernel[-2], name) for name, kernel in known if len(kernel) > 1}
    written = {
        (row.kernel[-1], owner(row), row.type == "MatMul")
        for row in rows
        if row.kernel and _may_be_last(row) and not is_gradient(row)
    }
    return frozenset(
        name
        for width, name, dense in written
        if not any(
            reader != name and (depth == width if dense else depth % width == 0)
            for depth, reader in read
        )
    )


def _may_be_last(row: OperationTime) -> bool:
    return row.type == "MatMul" or (row.type == "Conv2D" and (row.kernel or ())[:2] == (1, 1))
