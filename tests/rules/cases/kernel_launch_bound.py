"""The cases of kernel-launch-bound: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.gpu.idle_gaps import GapSize
from tfdoctor.rules.execution.kernel_launch_bound import check


def example(
    launching_ms: float = 5.5,
    device_ms: float = 4.0,
    operations: Operations | None = None,
    framework: Framework = Framework(),
    steps: Steps | None = None,
) -> Verdict:
    """The GPU works for 4 ms of each 9.5 ms step."""
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: launching_ms}
    gaps = IdleGaps(launching_ms, {}, sizes, sizes, sizes, kernels=156.0)
    step = Breakdown.of(host=launching_ms, device=device_ms)
    steady = SteadySteps.of(steps or Steps.uniform(10, step.step_ms))
    return check(gaps, step, operations, framework, steady)


sick = example


def healthy() -> Verdict:
    """The same step, compiled with XLA."""
    return example(0.2)
