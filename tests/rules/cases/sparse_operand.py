"""The cases of sparse-operand: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.program import Zeros
from tfdoctor.rules.operations.sparse_operand import SparseOperand, SparseOperands, check


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
