"""sparse-operand: both sides of its limits, and the three remedies."""

import pytest

from tests.rules.applied import applied
from tests.rules.verdicts import as_finding
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules import sparse_operand
from tfdoctor.rules.sparse_operand import Limits, example
from tfdoctor.rules.sparse_operand.sparse_operands import SparseOperands
from tfdoctor.terms.verdict import Bound, Finding, Healthy, NotApplicable


def test_the_ceiling_is_the_share_of_values() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(0.002)
    assert effect.bound is Bound.AT_MOST


@pytest.mark.parametrize(("ms", "kind"), [(110 * Limits().share, Finding), (5.4, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(example(ms), kind)


@pytest.mark.parametrize(
    ("density", "kind"), [(0.99 * Limits().density, Finding), (0.011, Healthy)]
)
def test_both_sides_of_the_density(density: float, kind: type) -> None:
    assert isinstance(example(density=density), kind)


@pytest.mark.parametrize(
    ("fullest", "diagonal", "code"),
    [(9, False, "sparse_dense_matmul"), (1, False, "gather"), (1, True, "diag_part")],
)
def test_the_remedy_fits_the_matrix(fullest: int, code: str, *, diagonal: bool) -> None:
    assert code in as_finding(example(fullest=fullest, diagonal=diagonal)).remedies[0].code


def test_a_matrix_without_any_value_is_no_sparse_one() -> None:
    """Trap: an initial state of zeros."""
    assert isinstance(example(density=0.0, fullest=0), Healthy)


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(
        applied(sparse_operand, SparseOperands(()), Operations((unnamed,))), NotApplicable
    )
