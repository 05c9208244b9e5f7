"""Products of graphs that were not recorded: a recurrent layer's, in the body of its loop."""

import pytest

from tests.builders import matmul
from tfdoctor.facts.operations.matmuls import of_unknown_precision, repeated
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations

DENSE = matmul("MatMul", ms=1.0, layer="dense")


def looped(ms: float, calls: float = 80.0, ran: str = "") -> OperationTime:
    return matmul("MatMul", ms=ms, dtype="", name="MatMul", ran=ran, calls=calls)


def test_the_products_of_a_loop_are_said_to_be_unknown_with_their_share() -> None:
    said = of_unknown_precision(Operations((looped(5.0), DENSE)))
    assert said.startswith("the precision of 5.00 ms of 6.00 ms of matmuls and convolutions per step is")


@pytest.mark.parametrize(("ms", "told"), [(0.12, True), (0.11, False)])
def test_a_tenth_of_the_products_may_be_unknown(ms: float, *, told: bool) -> None:
    assert bool(of_unknown_precision(Operations((looped(ms), DENSE)))) is told


def test_a_kernel_whose_name_tells_the_precision_is_known() -> None:
    kernel = "volta_sgemm_128x64_nn"
    assert not of_unknown_precision(Operations((looped(5.0, ran=kernel), DENSE)))


@pytest.mark.parametrize(("calls", "ms", "told"), [(4.0, 0.8, True), (3.0, 0.6, False), (4.0, 0.81, False)])
def test_what_runs_again_and_again_is_small_and_often(calls: float, ms: float, *, told: bool) -> None:
    assert bool(repeated(Operations((looped(ms, calls), DENSE)), 4.0, 0.2, 0.05)) is told


@pytest.mark.parametrize(("each", "told"), [(0.0006, False), (0.0007, True)])
def test_a_twentieth_of_the_compute_may_run_there(each: float, *, told: bool) -> None:
    assert bool(repeated(Operations((looped(each * 80), DENSE)), 4.0, 0.2, 0.05)) is told
