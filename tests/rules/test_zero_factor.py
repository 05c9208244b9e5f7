"""zero-factor: both sides of the limit, and the remedy for gradients and for losses."""

from dataclasses import replace

import pytest

from tests.rules.cases.zero_factor import DROPPED, GRADIENT, example
from tests.rules.verdicts import as_finding
from tfdoctor.rules.zero_factor import Limits
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location


@pytest.mark.parametrize(("ms", "kind"), [(5.0, Finding), (4.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert Limits().share == 0.05
    dropped = replace(DROPPED, rows=(replace(GRADIENT, ms=ms),))
    assert isinstance(example(dropped, total=100.0), kind)


def test_the_operations_disappear_at_the_line_of_the_factor() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 28)
    assert {(effect.scales, effect.bound) for effect in finding.effects} == {(0.0, Bound.EXPECTED)}


@pytest.mark.parametrize(("of_gradients", "code"), [(True, "tape.gradient"), (False, "if weight")])
def test_the_remedy_fits_what_is_multiplied(code: str, *, of_gradients: bool) -> None:
    finding = as_finding(example(replace(DROPPED, of_gradients=of_gradients)))
    assert code in finding.remedies[0].code
