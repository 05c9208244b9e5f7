"""host-sync: the GPU idles after values are read in each step."""

from tests.rules.kit import *
from tfdoctor.facts.steps.steps import PS_PER_MS, TRACE, Step
from tfdoctor.rules.execution import host_sync
from tfdoctor.rules.execution.host_sync import check


def example(
    syncs: HostSyncs = HostSyncs(1.0, 1.0, 2.0, 1.0), count: int = 10, compiling: CompileTime | None = None,
    framework: Framework = Framework(), step: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """The loss is printed in each step, and the GPU idles for 3 of 10 ms afterwards."""
    whole = step or Breakdown.of(host=2.0, between=1.0, device=7.0)
    steady = SteadySteps.of(Steps.uniform(count, whole.step_ms))
    return check(syncs, steady, whole, compiling, framework)


sick = example


def healthy() -> Verdict:
    """The loss is copied back, but the host has already launched the next step."""
    return example(HostSyncs(1.0, 0.0))


def waited(idle_ms: float, reads: float, count: int = 10) -> Verdict:
    return example(HostSyncs(1.0, reads, host_ms=idle_ms / 2, between_ms=idle_ms / 2), count)


def compiled(ms: float) -> Verdict:
    return example(HostSyncs(1.0, 0.9, host_ms=4.5), compiling=CompileTime(10, 10, 5, ms))


test_a_value_that_is_read_in_each_step = each_is(
    (waited(0.4501, 0.9), Finding),
    (waited(0.449, 0.9), Healthy),
    # Nothing follows the last step's value: of four steps only three are seen to wait
    (waited(5.0, 0.75, 4), Finding),
    (waited(5.0, 0.8), Healthy),  # trap: a loss that is printed every few steps
    (waited(5.0, 0.81), Finding),
    (waited(5.0, 1.0, 2), NotApplicable),  # trap: a trace of one step, which the profiler ends
    (compiled(3.0), Finding),
    (compiled(4.6), Healthy),  # waiting for the compiler
)


def test_both_parts_of_the_wait_may_go() -> None:
    assert {effect.stage for effect in as_finding(waited(5.0, 0.81)).effects} == {Stage.HOST, Stage.BETWEEN}


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
