"""host-sync: the GPU idles after values are read in each step."""

from tests.rules.kit import *
from tfdoctor.facts.steps.steps import TRACE
from tfdoctor.rules.execution.host_sync import check


def example(
    syncs: HostSyncs = HostSyncs(1.0, 1.0, 2.0, 1.0), count: int = 10, compiling: CompileTime | None = None,
    framework: Framework = Framework(), step: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """The loss is printed in each step, and the GPU idles for 3 of 10 ms afterwards."""
    whole = step or Breakdown.of(host=2.0, between=1.0, device=7.0)
    steady = SteadySteps.of(even_steps(count, whole.step_ms))
    return check(syncs, steady, whole, compiling, framework)


def waited(idle_ms: float, reads: float, count: int = 10) -> Verdict:
    return example(HostSyncs(1.0, reads, host_ms=idle_ms / 2, between_ms=idle_ms / 2), count)


sick = example
healthy = described(
    "The loss is copied back, but the host has already launched the next step.", example, HostSyncs(1.0, 0.0)
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["both parts of the wait may go: a twentieth of the step, less"] = waited(0.4501, 0.9), waited(0.449, 0.9)
    told["nothing follows the last step's value: of four steps only three are seen to wait"] = waited(5.0, 0.75, 4)
    told["a loss that is printed every few steps, or in four of five steps"] = waited(5.0, 0.8), waited(5.0, 0.81)
    told["a trace of one step, which the profiler ends"] = waited(5.0, 1.0, 2)
    told["the compiler"] = example(HostSyncs(1.0, 0.9, host_ms=4.5), compiling=CompileTime(10, 10, 5, 3.0))
    told[...] = example(HostSyncs(1.0, 0.9, host_ms=4.5), compiling=CompileTime(10, 10, 5, 4.6))
    whole = replace(SteadySteps.of(even_steps(10, 10.0)), unit=TRACE, why_no_steps="no step is marked")
    told["no steps"] = applied(check, HostSyncs(1.0, 1.0), whole, Breakdown.of(device=5.0), None, Framework())
    told["no remedy of Keras for a run without it"] = example(framework=Framework(JAX))
    calls = [Step(n, n * 4 * PS_PER_MS, (n * 4 + 3) * PS_PER_MS, (n * 4 + 4) * PS_PER_MS, 4) for n in range(9)]
    step = Breakdown.of(host=2.0, between=1.0, device=7.0)
    told["no several steps per call where calls hold several: the program does that already"] = check(
        HostSyncs(1.0, 1.0, 2.0, 1.0), SteadySteps.of(Steps.of(calls)), step, None, Framework()
    )
