"""sparse-operand: both sides of its limits, and the three remedies."""

import pytest

from tests.rules.cases.sparse_operand import example
from tests.rules.kit import *
from tfdoctor.facts.run.program import Zeros
from tfdoctor.rules import sparse_operand
from tfdoctor.rules.sparse_operand import Limits, SparseOperand, SparseOperands


def test_the_ceiling_is_the_share_of_values() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert effect.scales == near(0.002)
    assert effect.bound is Bound.AT_MOST


def test_both_sides_of_the_share() -> None:
    assert [type(example(ms)) for ms in (110 * Limits().share, 5.4)] == [Finding, Healthy]


def test_both_sides_of_the_density() -> None:
    assert [type(example(density=density)) for density in (0.99 * Limits().density, 0.011)] == [Finding, Healthy]


@pytest.mark.parametrize(
    ("fullest", "diagonal", "code"),
    [(9, False, "sparse_dense_matmul"), (1, False, "gather"), (1, True, "diag_part")],
)
def test_the_remedy_fits_the_matrix(fullest: int, code: str, *, diagonal: bool) -> None:
    assert code in as_finding(example(fullest=fullest, diagonal=diagonal)).remedies[0].code


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


def test_a_matrix_without_any_value_is_no_sparse_one() -> None:
    """Trap: an initial state of zeros."""
    assert isinstance(example(density=0.0, fullest=0), Healthy)


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(sparse_operand, SparseOperands(()), Operations((unnamed,))), NotApplicable)
