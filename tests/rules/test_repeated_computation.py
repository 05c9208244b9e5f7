"""repeated-computation: when work that is done again is worth a change."""

import pytest

from tests.rules.applied import applied
from tests.rules.cases.repeated_computation import FIRST, example
from tests.rules.cases.repeated_computation import named as row
from tests.rules.verdicts import as_finding
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules import repeated_computation
from tfdoctor.rules.repeated_computation import Constant, GradientSum, Repeat, RepeatedResults
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable

AGAIN = Location("train.py", 9)


def repeated(time_ms: float) -> RepeatedResults:
    return RepeatedResults((Repeat(FIRST, AGAIN, (row("b/MatMul", time_ms),)),))


@pytest.mark.parametrize(
    ("time_ms", "rest_ms", "kind"),
    [(3.0, 97.0, Finding), (2.9, 97.1, Healthy), (0.1, 0.1, Finding), (0.09, 0.1, Healthy)],
)
def test_its_share_and_its_time_decide(time_ms: float, rest_ms: float, kind: type) -> None:
    assert isinstance(example(repeated(time_ms), rest_ms), kind)


def test_the_remedy_is_at_the_line_that_computes_again() -> None:
    finding = as_finding(example(repeated(20.0), 80.0))
    (remedy,) = finding.remedies
    assert remedy.at == AGAIN
    assert "train.py:31" in remedy.action


def test_gradients_and_constants_are_ceilings() -> None:
    again = Repeat(FIRST, AGAIN, (row("b/MatMul", 20.0),), (row("gradient_tape/b/MatMul", 30.0),))
    constant = Constant(AGAIN, (row("Sum", 10.0),))
    finding = as_finding(example(RepeatedResults((again,), (constant,)), 40.0))
    assert [(effect.scales, effect.bound) for effect in finding.effects] == [
        (0.0, Bound.EXPECTED),
        (0.0, Bound.AT_MOST),
        (0.0, Bound.AT_MOST),
    ]


def test_what_depends_on_variables_is_known_only_if_nothing_assigns_them() -> None:
    constant = Constant(AGAIN, (row("Cholesky", 20.0),), (Location("train.py", 5),))
    finding = as_finding(example(RepeatedResults((), (constant,)), 40.0))
    (remedy,) = finding.remedies
    assert remedy.at == AGAIN
    assert "assigns the variables read at train.py:5" in remedy.action
    assert "change only where Python assigns a variable" in finding.summary
    assert [effect.bound for effect in finding.effects] == [Bound.AT_MOST]


def test_a_sum_of_gradients_keeps_those_that_remain() -> None:
    sums = (GradientSum(row("AddN", 8.0), 0.75),)
    again = Repeat(FIRST, AGAIN, (row("b/MatMul", 20.0),), sums=sums)
    finding = as_finding(example(RepeatedResults((again,)), 40.0))
    effect = finding.effects[-1]
    assert (effect.subject, effect.scales, effect.bound) == ("AddN", 0.25, Bound.AT_MOST)


def test_scattered_repetitions_are_not_named() -> None:
    lines = [Location("train.py", line) for line in range(20)]
    scattered = tuple(Repeat(FIRST, line, (row(f"b{line.line}/Cast", 1.0),)) for line in lines)
    assert isinstance(example(RepeatedResults(scattered), 10.0), Healthy)


def test_operations_that_xla_compiled_are_not_judged() -> None:
    fused = (row("fusion", 10.0),)
    assert isinstance(applied(repeated_computation, RepeatedResults(), Operations(fused)), NotApplicable)
