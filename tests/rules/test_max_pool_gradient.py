"""max-pool-gradient: both sides of its share, and oneDNN's fast one."""

import pytest

from tests.rules.cases.max_pool_gradient import NAME, example
from tests.rules.kit import *
from tfdoctor.rules import max_pool_gradient
from tfdoctor.rules.max_pool_gradient import Limits

CPU = Hardware(DeviceKind.CPU, "x")


@pytest.mark.parametrize("kind", ["MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradWithArgmax"])
def test_its_whole_time_is_a_ceiling(kind: str) -> None:
    finding = as_finding(example(kind=kind))
    (effect,) = finding.effects
    assert (effect.subject, effect.scales, effect.bound) == (NAME, 0.0, Bound.AT_MOST)


def test_both_sides_of_the_share() -> None:
    assert [type(example(ms)) for ms in (30 * Limits().share, 0.89)] == [Finding, Healthy]


def test_onednns_gradient_is_fast() -> None:
    verdict = as_healthy(example(12.0, f"{NAME}:_MklNativeMaxPoolGrad", hardware=CPU))
    assert "oneDNN" in verdict.summary


def test_eigens_gradient_on_a_cpu_is_slow() -> None:
    finding = as_finding(example(12.0, f"{NAME}:MaxPoolGrad", hardware=CPU))
    assert "run_eagerly" in finding.remedies[0].code


def test_the_gradient_of_average_pooling_is_not_counted() -> None:
    row = OperationTime(name=NAME, type="AvgPoolGrad", ms=12.0)
    assert isinstance(applied(max_pool_gradient, Operations.training(30.0, row), CPU), Healthy)


def test_xla_searches_for_the_maxima_again() -> None:
    row = OperationTime(name="select-and-scatter.3", type="select-and-scatter", ms=9.0)
    rest = OperationTime(name="transpose(jvp(conv))", type="convolution", ms=30.0)
    assert isinstance(applied(max_pool_gradient, Operations((row, rest)), Hardware(DeviceKind.TPU, "x")), Finding)


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(max_pool_gradient, Operations((unnamed,)), CPU), NotApplicable)
