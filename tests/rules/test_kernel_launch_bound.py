"""kernel-launch-bound: the GPU idles while the host launches."""

from dataclasses import replace

import pytest

from tfdoctor.facts.steps.steady_steps import TRACE, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.rules import kernel_launch_bound
from tfdoctor.verdict import Finding, Healthy, NotApplicable


def steps(count: int = 10) -> SteadySteps:
    return SteadySteps.of(Steps.uniform(count, 10.0))


@pytest.mark.parametrize(("launching", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_idle_while_the_host_launches(launching: float, kind: type) -> None:
    gaps, _, _ = kernel_launch_bound._example(launching)  # noqa: SLF001 - its own example
    step = Breakdown.of(host=launching, device=10.0 - launching)
    found = kernel_launch_bound.check(gaps, steps(), step)
    assert isinstance(found, kind)


def test_without_steps_nothing_is_said() -> None:
    whole = replace(steps(), unit=TRACE, why_no_steps="no step is marked")
    gaps, _, step = kernel_launch_bound._example(5.0)  # noqa: SLF001 - its own example
    found = kernel_launch_bound.check(gaps, whole, step)
    assert found == NotApplicable(reason="no step is marked")
