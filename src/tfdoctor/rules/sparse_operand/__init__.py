"""A matrix of mostly zeros is multiplied dense.

## What it checks

Matmuls with a constant matrix of which 1 % or less is not zero, such as the adjacency matrix of a graph, a
diagonal matrix or one-hot rows. The recording looks at 64 rows of each matrix of 65,536 values or more that a
`tf.function` captures, or contains as a constant. Matrices that are arguments of the function are not looked at.

## Why it matters

A dense product multiplies all the zeros. In the adjacency matrix of 2,708 nodes with four neighbors each, 99.8
% of the multiplications are in vain, in the forward pass and again in the gradient.

## How to fix

Keep the matrix as a `tf.SparseTensor` and multiply with `tf.sparse.sparse_dense_matmul`, which has a gradient
for the dense operand. Multiply by a diagonal as a vector (`diagonal[:, None] * x`), and replace one-hot rows by
`tf.gather`. The saving is an upper bound: the time of a sparse product per value is longer.

## Holds for

All devices. On two cores of a Xeon with AMX (TensorFlow 2.21), sparse products of 1,024 and 2,708 rows with 64
to 512 columns were faster than dense float32 ones at 0.2 % of values (0.2 to 0.4 times as long), took about as
long at 1 % (0.85 to 1.3 times) and were slower at 3 % (1.5 to 6 times); with 7 columns, they took about as long
at 3 %. XLA does not compile sparse products.

## Sources

- [TensorFlow, working with sparse tensors](https://www.tensorflow.org/guide/sparse_tensor)
- [TensorFlow, tf.sparse.sparse_dense_matmul](https://www.tensorflow.org/api_docs/python/tf/sparse/sparse_dense_matmul)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Zeros
from tfdoctor.rules.sparse_operand.sparse_operands import SparseOperand, SparseOperands
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, Remedy, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (
    found(SparseOperands, lambda operands: operands.operands, "No large constant matrix is multiplied"),
)
BY_HAND = "every product with the matrix has to be written for a sparse one"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which matrices are sparse, and which products are worth a change."""

    density: float = share_limit(
        0.01,
        "Largest share of values that are not zero at which a sparse product is proposed: at 1 % it took 0.85 to "
        "1.3 times as long as a dense one on a Xeon with AMX",
    )
    share: float = share_limit(
        0.05, "Smallest share of the compute time in such products that justifies another format of the matrix"
    )


def check(operands: SparseOperands, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Find the matrices of zeros, and add up the products with them."""
    sparse = [one for one in operands.operands if one.zeros.fullest and one.density <= limits.density]
    total_ms = sum(one.ms for one in sparse)
    share = total_ms / operations.total_ms
    evidence = (
        Measure("time in products with matrices of zeros, per step", ms(total_ms)),
        Measure.share("share of the compute time in these products", share, limits.share),
        Table.of(
            operands.operands,
            ("matrix", lambda one: " x ".join(map(str, one.shape))),
            ("your line", lambda one: one.at),
            ("values that are not zero", lambda one: ratio(one.density)),
            ("time per step", lambda one: ms(one.ms)),
        ),
    )
    if share < limits.share:
        return Healthy(
            summary=f"Products with matrices that are mostly zeros take {milliseconds(total_ms)} per step",
            evidence=evidence,
        )
    return Finding(
        summary=f"Products with {counted(len(sparse), 'matrix', 'matrices')} of almost only zeros take "
        f"{milliseconds(total_ms)} per step, {percent(share)} of the compute time",
        evidence=evidence,
        remedies=tuple(_remedy(one) for one in sparse),
        effects=tuple(row.scaled(one.density, Bound.AT_MOST) for one in sparse for row in one.rows),
        alike=len(sparse) - 1,
    )


def _remedy(one: SparseOperand) -> Remedy:
    if one.zeros.diagonal:
        return Remedy("Multiply by the diagonal as a vector", DIAGONAL, one.at)
    if one.zeros.fullest == 1:
        return Remedy("Gather rows instead of multiplying by one-hot rows", GATHER, one.at)
    return Remedy("Keep the matrix sparse and multiply with tf.sparse", SPARSE, one.at)


SPARSE = """\
matrix = tf.sparse.from_dense(matrix)  # once, or tf.sparse.SparseTensor(indices, values, shape)
y = tf.sparse.sparse_dense_matmul(matrix, x)"""

DIAGONAL = "y = tf.linalg.diag_part(matrix)[:, None] * x  # the diagonal taken once, before the loop"

GATHER = """\
index = tf.argmax(matrix, axis=1)  # once, where all ones are 1.0
y = tf.gather(x, index)"""


def example(
    time_ms: float = 95.0, density: float = 0.002, fullest: int | None = None, *, diagonal: bool = False
) -> Verdict:
    """An adjacency matrix with 0.2 % of values takes 95 of 110 ms of compute."""
    row = OperationTime(name="gcn/MatMul", type="MatMul", ms=time_ms, at=Location("train.py", 31))
    most = max(1, round(2708 * density)) if fullest is None else fullest
    operand = SparseOperand("matrix", (2708, 2708), Zeros(1.0 - density, most, diagonal), (row,))
    return check(SparseOperands((operand,)), Operations.training(110.0, row))


sick = example


def healthy() -> Verdict:
    """The same product with a triangular matrix, half of which are zeros."""
    return example(density=0.5)
