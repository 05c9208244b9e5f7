"""sparse-operand: both sides of its limits, and the three remedies."""

import pytest

from tests.rules.applied import applied
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Zeros
from tfdoctor.rules import sparse_operand
from tfdoctor.rules.sparse_operand import LIMITS
from tfdoctor.rules.sparse_operand.sparse_operands import SparseOperand, SparseOperands
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Verdict


def check(
    ms: float = 50.0, density: float = 0.002, fullest: int = 9, *, diagonal: bool = False
) -> Verdict:
    row = OperationTime(name="gcn/MatMul", type="MatMul", ms=ms)
    rest = OperationTime(name="gradient_tape/x", type="MatMul", ms=100.0 - ms)
    operand = SparseOperand("m", (2708, 2708), Zeros(1.0 - density, fullest, diagonal), (row,))
    return applied(sparse_operand, SparseOperands((operand,)), Operations((row, rest)))


def test_the_ceiling_is_the_share_of_values() -> None:
    finding = check()
    assert isinstance(finding, Finding)
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(0.002)
    assert effect.bound is Bound.AT_MOST


@pytest.mark.parametrize(("ms", "kind"), [(100 * LIMITS.share, Finding), (4.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(check(ms), kind)


@pytest.mark.parametrize(("density", "kind"), [(0.99 * LIMITS.density, Finding), (0.011, Healthy)])
def test_both_sides_of_the_density(density: float, kind: type) -> None:
    assert isinstance(check(density=density), kind)


@pytest.mark.parametrize(
    ("fullest", "diagonal", "code"),
    [(9, False, "sparse_dense_matmul"), (1, False, "gather"), (1, True, "diag_part")],
)
def test_the_remedy_fits_the_matrix(fullest: int, code: str, *, diagonal: bool) -> None:
    finding = check(fullest=fullest, diagonal=diagonal)
    assert isinstance(finding, Finding)
    assert code in finding.remedies[0].code


def test_a_matrix_without_any_value_is_no_sparse_one() -> None:
    """Trap: an initial state of zeros."""
    assert isinstance(check(density=0.0, fullest=0), Healthy)


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    verdict = applied(sparse_operand, SparseOperands(()), Operations((unnamed,)))
    assert isinstance(verdict, NotApplicable)
