"""kernel-launch-bound: the GPU idles while the host launches kernels."""

from tests.rules.kit import *
from tfdoctor.facts.gpu.idle_gaps import GapSize
from tfdoctor.facts.steps.steps import TRACE
from tfdoctor.rules.execution import kernel_launch_bound
from tfdoctor.rules.execution.kernel_launch_bound import check


def example(
    launching_ms: float = 5.5, device_ms: float = 4.0, operations: Operations | None = None,
    framework: Framework = Framework(), steps: Steps | None = None,
) -> Verdict:  # fmt: skip
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


STEPS = SteadySteps.of(Steps.uniform(10, 10.0))


def test_idle_while_the_host_launches() -> None:
    assert kinds(example(1.0, 9.0), example(0.99, 9.01)) == [Finding, Healthy]


def test_without_steps_nothing_is_judged() -> None:
    whole = replace(STEPS, unit=TRACE, why_no_steps="no step is marked")
    idle, step = (IdleGaps(5.0, {}, {}, {}, {}, 156.0), Breakdown.of(host=5.0, device=5.0))
    verdict = applied(kernel_launch_bound, idle, whole, step, Framework())
    assert verdict == NotApplicable(reason="no step is marked")


FUSED = Operation(name="f", type="sub (fused)", compiled=True)
XLA = OperationTime(name="f", type="sub (fused)", ms=5.0, operation=FUSED)


def test_a_step_that_xla_has_compiled_is_not_to_be_compiled() -> None:
    for rest_ms, framework, first, code in (
        (5.1, Framework(), "Compile the step with XLA", "jit_compile=True"),
        (4.9, Framework(), "Run several steps per call", "steps_per_execution"),
        (5.1, Framework(JAX), "Run several steps in one compiled call", "jax.lax.scan"),
    ):
        rows = Operations((XLA, OperationTime(name="g", type="Relu", ms=rest_ms)))
        finding = as_finding(example(5.0, 5.0, rows, framework))
        assert finding.remedies[0].action == first
        assert code in finding.remedies[0].code
        assert ("the compiled step" in finding.summary) == (first != "Compile the step with XLA")


def test_no_several_steps_per_call_where_calls_hold_several() -> None:
    several = Steps.of(replace(step, calls=4) for step in Steps.uniform(10, 40.0).steps)
    for framework, compiled_ms in ((Framework(), 5.0), (Framework(JAX), 0.0)):
        rows = Operations((replace(XLA, ms=compiled_ms),))
        finding = as_finding(example(5.0, 5.0, rows, framework, several))
        assert finding.remedies
        assert not any("everal steps" in remedy.action for remedy in finding.remedies)
