"""unused-gradients: both sides of the limit."""

from dataclasses import replace

import pytest

from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.rules.unused_gradients import UNUSED, Limits, example
from tfdoctor.rules.unused_gradients.unused_work import UnusedWork
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Stage


@pytest.mark.parametrize(("host_ms", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_a_twentieth_of_the_step_is_found(host_ms: float, kind: type) -> None:
    assert Limits().share == 0.05
    assert isinstance(example(replace(UNUSED, kernels_ms=0.0, host_ms=host_ms)), kind)


def test_kernels_and_python_disappear_at_the_line_of_the_gradient() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 43)
    gone = {effect.stage: effect.of.value for effect in finding.effects if effect.of}
    assert gone == {Stage.DEVICE: 6.0, Stage.HOST: 2.0}
    assert {(effect.scales, effect.bound) for effect in finding.effects} == {(0.0, Bound.EXPECTED)}
    assert "six variables" in finding.summary


def test_no_unused_gradient_is_healthy() -> None:
    assert "is used" in as_healthy(example(UnusedWork())).summary
