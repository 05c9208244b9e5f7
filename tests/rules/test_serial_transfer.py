"""serial-transfer: copies while no kernel runs."""

from tests.rules.kit import *
from tfdoctor.facts.gpu.activity import D2H, H2D, PAGEABLE, UNKNOWN, Transfer, Transfers
from tfdoctor.facts.steps.steps import TRACE
from tfdoctor.rules.execution.serial_transfer import check


def example(
    *copies: Transfer, exposed_ms: float = 25.0, device_ms: float = 175.0, framework: Framework = Framework()
) -> Verdict:
    """Copying a batch of 100 MB from pageable memory takes 25 of 200 ms."""
    copy = Transfer(H2D, 1.0, 25.0, exposed_ms, 1e8, 4e9, {PAGEABLE: 1e8, UNKNOWN: 0.0})
    step = Breakdown.of(transfer=exposed_ms, device=device_ms)
    return check(Transfers(copies or (copy,)), step, framework)


def steps(count: int = 10) -> SteadySteps:
    return SteadySteps.of(even_steps(count, 10.0))


sick = example
healthy = described("The same copy overlaps with kernels.", example, exposed_ms=0.1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["2 % of the step, and less"] = example(exposed_ms=0.2, device_ms=10.0 - 0.2)
    told[...] = example(exposed_ms=0.19, device_ms=10.0 - 0.19)
    up = Transfer(H2D, 1.0, 2.0, 2.0, 1e7, 1e9, {PAGEABLE: 1e7})
    down = Transfer(D2H, 2.0, 3.0, 3.0, None, None, {})
    told["most of it goes up, from pageable memory"] = example(up, exposed_ms=5.0, device_ms=5.0)
    told["most of it comes back"] = example(up, down, exposed_ms=5.0, device_ms=5.0)
    whole = replace(SteadySteps.of(even_steps(10, 10.0)), unit=TRACE, why_no_steps="no step is marked")
    told["no steps"] = applied(check, Transfers(()), whole, Breakdown.of(device=5.0), Framework())
    told["a batch of JAX is copied ahead by JAX"] = example(framework=Framework(JAX))
