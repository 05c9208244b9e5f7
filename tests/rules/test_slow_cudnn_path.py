"""slow-cudnn-path: both sides of its share, and a remedy for each obstacle."""

import pytest

from tests.rules.applied import applied
from tests.rules.cases.slow_cudnn_path import example
from tests.rules.verdicts import as_finding
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import STEP, SteadySteps
from tfdoctor.rules import slow_cudnn_path
from tfdoctor.rules.slow_cudnn_path import Limits
from tfdoctor.rules.slow_cudnn_path.recurrent_layers import CudnnObstacle, RecurrentLayers
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable, Stage
from tfdoctor.trace import Intervals


def test_the_layers_operations_and_launches_may_go() -> None:
    finding = as_finding(example())
    assert {effect.stage for effect in finding.effects} == {Stage.DEVICE, Stage.HOST}
    assert all(effect.bound is Bound.AT_MOST for effect in finding.effects)
    assert "recurrent_dropout" in finding.remedies[0].action
    assert finding.remedies[0].at == Location("train.py", 9)


@pytest.mark.parametrize(("factor", "kind"), [(1.01, Finding), (0.99, Healthy)])
def test_both_sides_of_the_share(factor: float, kind: type) -> None:
    loop_ms = Limits().share * 100 * factor
    assert isinstance(example(loop_ms=loop_ms, launching_ms=0.0, step_ms=100.0), kind)


@pytest.mark.parametrize("obstacle", CudnnObstacle)
def test_each_obstacle_has_a_remedy(obstacle: CudnnObstacle) -> None:
    assert as_finding(example(obstacle)).remedies[0].action == obstacle.action


def test_a_cpu_has_no_cudnn() -> None:
    """Trap: the same loop on a CPU, which recurrent-loop judges."""
    steady = SteadySteps(STEP, (), Intervals(), 1)
    hardware = Hardware(DeviceKind.CPU, "x")
    facts = (RecurrentLayers((), 1), Breakdown.of(device=9.0), hardware, steady)
    assert isinstance(applied(slow_cudnn_path, *facts), NotApplicable)
