"""device-placement: both sides of its share, and what to do by the kind of operation."""

import pytest

from tests.rules.cases.device_placement import example
from tests.rules.kit import *
from tfdoctor.rules.execution.device_placement import Limits


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
