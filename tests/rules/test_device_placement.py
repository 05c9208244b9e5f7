"""device-placement: both sides of its share, and what to do by the kind of operation."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.gpu.host_syncs import Detour, Detours
from tfdoctor.rules.execution.device_placement import Limits, check


def example(
    kind: str = "EagerPyFunc", copies_ms: float = 0.4, waiting_ms: float = 3.6, step_ms: float = 20.0
) -> Verdict:
    """A py_function in the model takes 4 of 20 ms, with its copies."""
    row = Detour("model/smooth/EagerPyFunc", kind, 1.0, copies_ms, waiting_ms, Location("train.py", 9))
    step = Breakdown.of(transfer=copies_ms, host=waiting_ms, device=step_ms - copies_ms - waiting_ms)
    return check(Detours((row,)), step)


sick = example


def healthy() -> Verdict:
    """All operations of the step run on the GPU."""
    return check(Detours(()), Breakdown.of(device=16.0))


def test_the_copies_and_the_wait_may_go() -> None:
    finding = as_finding(example())
    assert [(effect.stage, effect.scales) for effect in finding.effects] == [
        (Stage.TRANSFER, 0.0),
        (Stage.HOST, 0.0),
    ]
    assert all(effect.bound is Bound.AT_MOST for effect in finding.effects)
    assert finding.remedies[0].at == Location("train.py", 9)


def waits(share: float) -> Verdict:
    return example(copies_ms=0.0, waiting_ms=share * 100, step_ms=100.0)


test_both_sides_of_the_share = each_is(
    (waits(Limits().share * 1.01), Finding), (waits(Limits().share * 0.99), Healthy)
)


@pytest.mark.parametrize(
    ("kind", "word"), [("EagerPyFunc", "Python"), ("StringSplit", "strings"), ("Where", "GPU")]
)
def test_the_remedy_is_that_of_the_kind(kind: str, word: str) -> None:
    assert word in as_finding(example(kind)).remedies[0].action
