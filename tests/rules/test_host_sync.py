"""host-sync: the GPU idles after values are read in each step."""

import pytest

from tests.rules.cases.host_sync import example
from tests.rules.kit import *
from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.facts.steps.steps import PS_PER_MS, TRACE, Step
from tfdoctor.rules import host_sync
from tfdoctor.rules.host_sync import check


@pytest.mark.parametrize(
    ("idle_ms", "reads", "count", "kind"),
    [
        (0.4501, 0.9, 10, Finding),
        (0.449, 0.9, 10, Healthy),
        (5.0, 0.75, 4, Finding),
        (5.0, 0.8, 10, Healthy),
        (5.0, 0.81, 10, Finding),
        (5.0, 1.0, 2, NotApplicable),
    ],
)
def test_a_value_that_is_read_in_each_step(idle_ms: float, reads: float, count: int, kind: type) -> None:
    """Trap: a loss that is printed every few steps; a trace of one step, which the profiler ends.

    Nothing follows the last step's value: of four steps only three are seen to wait.
    """
    syncs = HostSyncs(1.0, reads, host_ms=idle_ms / 2, between_ms=idle_ms / 2)
    verdict = example(syncs, count)
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert {effect.stage for effect in verdict.effects} == {Stage.HOST, Stage.BETWEEN}


@pytest.mark.parametrize(("ms", "kind"), [(3.0, Finding), (4.6, Healthy)])
def test_waiting_for_the_compiler_is_not_waiting_for_a_value(ms: float, kind: type) -> None:
    syncs, compiling = HostSyncs(1.0, 0.9, host_ms=4.5), CompileTime(10, 10, 5, ms)
    assert isinstance(example(syncs, compiling=compiling), kind)


def test_without_steps_nothing_is_judged() -> None:
    whole = replace(SteadySteps.of(Steps.uniform(10, 10.0)), unit=TRACE, why_no_steps="no step is marked")
    verdict = applied(host_sync, HostSyncs(1.0, 1.0), whole, Breakdown.of(device=5.0), None, Framework())
    assert verdict == NotApplicable(reason="no step is marked")


def test_no_remedy_of_keras_for_a_run_without_it() -> None:
    finding = as_finding(example(framework=Framework(JAX)))
    assert not any("model.compile" in remedy.code for remedy in finding.remedies)


def test_no_several_steps_per_call_where_calls_hold_several() -> None:
    """Kind: a remedy that proposes what the program does already."""
    calls = [Step(n, n * 4 * PS_PER_MS, (n * 4 + 3) * PS_PER_MS, (n * 4 + 4) * PS_PER_MS, 4) for n in range(9)]
    steady = SteadySteps.of(Steps.of(calls))
    step = Breakdown.of(host=2.0, between=1.0, device=7.0)
    finding = as_finding(check(HostSyncs(1.0, 1.0, 2.0, 1.0), steady, step, None, Framework()))
    assert [remedy.action for remedy in finding.remedies] == ["Read values every 100 steps"]
