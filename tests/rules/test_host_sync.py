"""host-sync: the GPU idles after values that are read in each step."""

from dataclasses import replace

import pytest

from tfdoctor.facts.breakdown import Breakdown
from tfdoctor.facts.host_syncs import HostSyncs
from tfdoctor.facts.steps import Steps
from tfdoctor.facts.typical import TRACE, Typical
from tfdoctor.rules import host_sync
from tfdoctor.verdict import Finding, Healthy, NotApplicable, Stage


def steps(count: int = 10) -> Typical:
    return Typical.of(Steps.uniform(count, 10.0))


@pytest.mark.parametrize(
    ("idle", "often", "count", "kind"),
    [
        (0.5, 1.0, 10, Finding),
        (0.49, 1.0, 10, Healthy),
        (5.0, 0.8, 10, Healthy),
        (5.0, 0.9, 10, Finding),
        (5.0, 1.0, 2, NotApplicable),
    ],
)
def test_a_value_that_is_read_in_each_step(
    idle: float, often: float, count: int, kind: type
) -> None:
    """Trap: a loss that is printed every few steps; a trace of one step, which the profiler ends."""
    syncs = HostSyncs(1.0, often, host_ms=idle / 2, between_ms=idle / 2)
    step = Breakdown.of(host=5.0, device=5.0)
    found = host_sync.check(syncs, steps(count), step)
    assert isinstance(found, kind)
    if isinstance(found, Finding):
        assert {effect.stage for effect in found.effects} == {Stage.HOST, Stage.BETWEEN}


def test_without_steps_nothing_is_said() -> None:
    whole = replace(steps(), unit=TRACE, why_no_steps="no step is marked")
    found = host_sync.check(HostSyncs(1.0, 1.0), whole, Breakdown.of(device=5.0))
    assert found == NotApplicable(reason="no step is marked")
