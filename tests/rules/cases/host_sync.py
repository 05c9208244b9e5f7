"""The cases of host-sync: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.host_sync import check


def example(
    syncs: HostSyncs = HostSyncs(1.0, 1.0, 2.0, 1.0),
    count: int = 10,
    compiling: CompileTime | None = None,
    framework: Framework = Framework(),
    step: Breakdown | None = None,
) -> Verdict:
    """The loss is printed in each step, and the GPU idles for 3 of 10 ms afterwards."""
    whole = step or Breakdown.of(host=2.0, between=1.0, device=7.0)
    steady = SteadySteps.of(Steps.uniform(count, whole.step_ms))
    return check(syncs, steady, whole, compiling, framework)


sick = example


def healthy() -> Verdict:
    """The loss is copied back, but the host has already launched the next step."""
    return example(HostSyncs(1.0, 0.0))
