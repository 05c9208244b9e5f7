"""kernel-launch-bound: the GPU idles while the host launches kernels."""

from tests.rules.kit import *
from tfdoctor.facts.steps.steps import TRACE
from tfdoctor.rules.execution.kernel_launch_bound import check

STEPS = SteadySteps.of(even_steps(10, 10.0))
FUSED = Operation(name="f", type="sub (fused)", compiled=True)
XLA = took("f", "sub (fused)", 5.0, operation=FUSED)
SEVERAL = Steps.of(replace(step, calls=4) for step in even_steps(10, 40.0).steps)


def example(
    launching_ms: float = 5.5, device_ms: float = 4.0, operations: Operations | None = None,
    framework: Framework = Framework(), steps: Steps | None = None,
) -> Verdict:  # fmt: skip
    """The GPU works for 4 ms of each 9.5 ms step."""
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: launching_ms}
    gaps = IdleGaps(launching_ms, {}, sizes, sizes, sizes, kernels=156.0)
    step = Breakdown.of(host=launching_ms, device=device_ms)
    steady = SteadySteps.of(steps or even_steps(10, step.step_ms))
    return check(gaps, step, operations, framework, steady)


def fused(compiled_ms: float, rest_ms: float, framework: Framework, steps: Steps | None = None) -> Verdict:
    rest = (took("g", "Relu", rest_ms),) if rest_ms else ()
    return example(5.0, 5.0, Operations((replace(XLA, ms=compiled_ms), *rest)), framework, steps)


sick = example
healthy = described("The same step, compiled with XLA.", example, 0.2)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["idle for a tenth of the step while the host launches, and less"] = example(1.0, 9.0), example(0.99, 9.01)
    whole = replace(STEPS, unit=TRACE, why_no_steps="no step is marked")
    idle, step = (IdleGaps(5.0, {}, {}, {}, {}, 156.0), Breakdown.of(host=5.0, device=5.0))
    told["without steps"] = applied(check, idle, whole, step, Framework())
    told["a step of which XLA has compiled half is not compiled, nor one of JAX"] = fused(5.0, 5.1, Framework())
    told[...] = fused(5.0, 4.9, Framework()), fused(5.0, 5.1, Framework(JAX))
    told["no several steps per call where calls hold several"] = fused(5.0, 0.0, Framework(), SEVERAL)
    told[...] = fused(0.0, 0.0, Framework(JAX), SEVERAL)
