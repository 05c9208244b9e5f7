"""zero-learning-rate: both sides of the limit."""

from dataclasses import replace

import pytest

from tests.rules.cases.zero_learning_rate import GRADIENT, SERVING, UPDATE, example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.rules.zero_learning_rate import Limits
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location


@pytest.mark.parametrize(("gradient", "kind"), [(3.0, Finding), (2.9, Healthy)])
def test_a_twentieth_of_the_compute_time_is_found(gradient: float, kind: type) -> None:
    useless = replace(SERVING, gradients=(replace(GRADIENT, ms=gradient),))
    assert Limits().share == 0.05
    assert isinstance(example(useless, total=20 * (3.0 + UPDATE.ms)), kind)


def test_the_operations_disappear_at_the_line_of_the_optimizer() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 17)
    assert {effect.scales for effect in finding.effects} == {0.0}
    assert {effect.bound for effect in finding.effects} == {Bound.EXPECTED}
    assert sum(effect.of.value for effect in finding.effects if effect.of) == pytest.approx(7.0)


def test_gradients_that_nobody_applies_are_not_in_the_graph() -> None:
    """Trap: the optimizer exists, but no step uses it."""
    unused = replace(SERVING, gradients=(), updates=())
    assert "take 0 ms" in as_healthy(example(unused)).summary
