"""serial-transfer: copies while no kernel runs."""

from tests.rules.kit import *
from tfdoctor.facts.gpu.activity import D2H, H2D, PAGEABLE, UNKNOWN, Transfer, Transfers
from tfdoctor.facts.steps.steps import TRACE
from tfdoctor.rules.execution import serial_transfer
from tfdoctor.rules.execution.serial_transfer import check


def example(
    *copies: Transfer, exposed_ms: float = 25.0, device_ms: float = 175.0, framework: Framework = Framework()
) -> Verdict:
    """Copying a batch of 100 MB from pageable memory takes 25 of 200 ms."""
    copy = Transfer(H2D, 1.0, 25.0, exposed_ms, 1e8, 4e9, {PAGEABLE: 1e8, UNKNOWN: 0.0})
    step = Breakdown.of(transfer=exposed_ms, device=device_ms)
    return check(Transfers(copies or (copy,)), step, framework)


sick = example


def healthy() -> Verdict:
    """The same copy overlaps with kernels."""
    return example(exposed_ms=0.1)


def steps(count: int = 10) -> SteadySteps:
    return SteadySteps.of(Steps.uniform(count, 10.0))


def test_copies_without_a_kernel_from_two_percent_on() -> None:
    found = [example(exposed_ms=exposed, device_ms=10.0 - exposed) for exposed in (0.2, 0.19)]
    assert kinds(*found) == [Finding, Healthy]


def test_the_summary_names_the_direction_and_pageable_memory() -> None:
    up = Transfer(H2D, 1.0, 2.0, 2.0, 1e7, 1e9, {PAGEABLE: 1e7})
    down = Transfer(D2H, 2.0, 3.0, 3.0, None, None, {})
    assert "pageable" in as_finding(example(up, exposed_ms=5.0, device_ms=5.0)).summary
    back = as_finding(example(up, down, exposed_ms=5.0, device_ms=5.0))
    assert D2H in back.summary
    assert "every 100 steps" in back.remedies[0].action
    assert {effect.bound for effect in back.effects} == {Bound.AT_MOST}


def test_without_steps_nothing_is_judged() -> None:
    whole = replace(steps(), unit=TRACE, why_no_steps="no step is marked")
    verdict = applied(serial_transfer, Transfers(()), whole, Breakdown.of(device=5.0), Framework())
    assert verdict == NotApplicable(reason="no step is marked")


def test_a_batch_of_jax_is_copied_ahead_by_jax() -> None:
    finding = as_finding(example(framework=Framework(JAX)))
    assert "jax.device_put" in finding.remedies[0].code
    assert not any("keras" in remedy.code for remedy in finding.remedies)
