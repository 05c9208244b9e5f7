"""sparse-operand: both sides of its limits, and the three remedies."""

from tests.rules.kit import *
from tfdoctor.facts.run.program import Zeros
from tfdoctor.rules.operations import sparse_operand
from tfdoctor.rules.operations.sparse_operand import Limits, SparseOperand, SparseOperands, check


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


def test_the_ceiling_is_the_share_of_values() -> None:
    assert [one[2:] for one in effects(example())] == [(near(0.002), Bound.AT_MOST)]


def test_both_sides_of_each_limit() -> None:
    """A matrix without any value is no sparse one: an initial state of zeros."""
    assert kinds(example(110 * Limits().share), example(5.4)) == [Finding, Healthy]
    densities = (example(density=density) for density in (0.99 * Limits().density, 0.011))
    assert kinds(*densities, example(density=0.0, fullest=0)) == [Finding, Healthy, Healthy]


def test_the_remedy_fits_the_matrix() -> None:
    for fullest, diagonal, code in (
        (9, False, "sparse_dense_matmul"),
        (1, False, "gather"),
        (1, True, "diag_part"),
    ):
        assert code in first_code(example(fullest=fullest, diagonal=diagonal))


def test_the_line_is_that_of_the_slowest_forward_product() -> None:
    """A gradient has the line of the tape."""
    times = {"gradient_tape/MatMul": 9.0, "MatMul": 1.0, "MatMul_1": 2.0}
    rows = (
        OperationTime(name=name, type="MatMul", ms=ms, operation=made(name, line))
        for line, (name, ms) in enumerate(times.items(), 1)
    )
    operand = SparseOperand("x", (8, 8), Zeros(share=0.9), tuple(rows))
    assert operand.at == Location("train.py", 3)


def made(name: str, line: int) -> Operation:
    return Operation(name=name, type="MatMul", at=Location("train.py", line))


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(sparse_operand, SparseOperands(()), Operations((unnamed,))), NotApplicable)
