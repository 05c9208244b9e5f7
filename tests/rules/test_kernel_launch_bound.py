"""kernel-launch-bound: the GPU idles while the host launches kernels."""

from dataclasses import replace

import pytest

from tfdoctor.facts.gpu.idle_gaps import GapSize, IdleGaps
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steady_steps import TRACE, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.rules import kernel_launch_bound
from tfdoctor.verdict import Finding, Healthy, NotApplicable

STEPS = SteadySteps.of(Steps.uniform(10, 10.0))


def gaps(launching_ms: float) -> IdleGaps:
    """Gaps of 10 to 100 us, all of them while the host launches."""
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: launching_ms}
    return IdleGaps(launching_ms, {}, sizes, sizes, sizes, kernels=156.0, python_known=True)


@pytest.mark.parametrize(("launching_ms", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_idle_while_the_host_launches(launching_ms: float, kind: type) -> None:
    step = Breakdown.of(host=launching_ms, device=10.0 - launching_ms)
    assert isinstance(
        kernel_launch_bound.check(gaps(launching_ms), STEPS, step, None, Framework()), kind
    )


def test_without_steps_nothing_is_judged() -> None:
    whole = replace(STEPS, unit=TRACE, why_no_steps="no step is marked")
    verdict = kernel_launch_bound.check(
        gaps(5.0), whole, Breakdown.of(host=5.0, device=5.0), None, Framework()
    )
    assert verdict == NotApplicable(reason="no step is marked")
