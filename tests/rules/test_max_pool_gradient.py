"""max-pool-gradient: both sides of its share, and oneDNN's fast one."""

import pytest

from tests.rules.applied import applied
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.kinds import DeviceKind
from tfdoctor.rules import max_pool_gradient
from tfdoctor.rules.max_pool_gradient import LIMITS
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Verdict

GPU, CPU = Hardware(DeviceKind.GPU, "x"), Hardware(DeviceKind.CPU, "x")
NAME = "gradient_tape/m/pool/MaxPoolGrad"


def check(
    ms: float = 10.0, ran: str = "pooling_bw", kind: str = "MaxPoolGrad", hardware: Hardware = GPU
) -> Verdict:
    row = OperationTime(name=NAME, type=kind, ms=ms, ran=(ran,))
    rest = OperationTime(name="gradient_tape/m/conv", type="Conv2D", ms=100.0 - ms)
    return applied(max_pool_gradient, Operations((row, rest)), hardware)


@pytest.mark.parametrize("kind", ["MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradWithArgmax"])
def test_its_whole_time_is_a_ceiling(kind: str) -> None:
    finding = check(kind=kind)
    assert isinstance(finding, Finding)
    (effect,) = finding.effects
    assert (effect.subject, effect.scales, effect.bound) == (NAME, 0.0, Bound.AT_MOST)


@pytest.mark.parametrize(("ms", "kind"), [(100 * LIMITS.share, Finding), (2.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(check(ms), kind)


def test_onednns_gradient_is_fast() -> None:
    verdict = check(40.0, f"{NAME}:_MklNativeMaxPoolGrad", hardware=CPU)
    assert isinstance(verdict, Healthy)
    assert "oneDNN" in verdict.summary


def test_eigens_gradient_on_a_cpu_is_slow() -> None:
    finding = check(40.0, f"{NAME}:MaxPoolGrad", hardware=CPU)
    assert isinstance(finding, Finding)
    assert "run_eagerly" in finding.remedies[0].code


def test_the_gradient_of_average_pooling_is_not_counted() -> None:
    assert isinstance(check(40.0, kind="AvgPoolGrad"), Healthy)


def test_xla_searches_for_the_maxima_again() -> None:
    row = OperationTime(name="select-and-scatter.3", type="select-and-scatter", ms=9.0)
    rest = OperationTime(name="transpose(jvp(conv))", type="convolution", ms=30.0)
    verdict = applied(max_pool_gradient, Operations((row, rest)), Hardware(DeviceKind.TPU, "x"))
    assert isinstance(verdict, Finding)


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(max_pool_gradient, Operations((unnamed,)), CPU), NotApplicable)
