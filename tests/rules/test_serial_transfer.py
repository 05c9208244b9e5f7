"""serial-transfer: copies beside no kernel."""

from dataclasses import replace

import pytest

from tfdoctor.facts.gpu.transfers import D2H, H2D, PAGEABLE, PINNED, Transfer, Transfers
from tfdoctor.facts.steps.steady_steps import TRACE, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.rules import serial_transfer
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable


def steps(count: int = 10) -> SteadySteps:
    return SteadySteps.of(Steps.uniform(count, 10.0))


@pytest.mark.parametrize(("exposed", "kind"), [(0.2, Finding), (0.19, Healthy)])
def test_copies_beside_no_kernel_from_two_percent_on(exposed: float, kind: type) -> None:
    copy = Transfer(H2D, 1.0, 5.0, exposed, 1e7, 1e9, {PINNED: 1e7})
    step = Breakdown.of(transfer=exposed, device=10.0 - exposed)
    assert isinstance(serial_transfer.check(Transfers((copy,)), steps(), step), kind)


def test_pageable_memory_and_the_direction_are_told() -> None:
    up = Transfer(H2D, 1.0, 2.0, 2.0, 1e7, 1e9, {PAGEABLE: 1e7})
    down = Transfer(D2H, 2.0, 3.0, 3.0, None, None, {})
    step = Breakdown.of(transfer=5.0, device=5.0)
    found = serial_transfer.check(Transfers((up,)), steps(), step)
    assert isinstance(found, Finding)
    assert "from pageable memory" in found.summary
    back = serial_transfer.check(Transfers((up, down)), steps(), step)
    assert isinstance(back, Finding)
    assert back.summary.startswith("Copies device to host")
    assert "read it every 100 steps" in back.remedies[0].action
    assert {effect.bound for effect in back.effects} == {Bound.AT_MOST}


def test_without_steps_nothing_is_said() -> None:
    whole = replace(steps(), unit=TRACE, why_no_steps="no step is marked")
    found = serial_transfer.check(Transfers(()), whole, Breakdown.of(device=5.0))
    assert found == NotApplicable(reason="no step is marked")
