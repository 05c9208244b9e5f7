"""grouped-convolution: both sides of its limits, and convolutions that are not grouped."""

import pytest

from tests.rules.applied import applied
from tests.rules.cases.grouped_convolution import convolution, example
from tests.rules.verdicts import as_finding
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.rules import grouped_convolution
from tfdoctor.rules.grouped_convolution import GroupedConvolutions, Limits
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, NotApplicable


@pytest.mark.parametrize(("peak_flop_s", "left"), [(None, 1 / 8), (1e12, 1 / 8), (1e13, 0.037)])
def test_what_is_left_is_the_time_at_the_peak_or_the_regular_rate(peak_flop_s: float | None, left: float) -> None:
    """The regular one reaches 2.96 TFLOP/s, more than the lower of the peaks."""
    finding = as_finding(example(peak_flop_s=peak_flop_s))
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(left, rel=0.01)
    assert effect.bound is Bound.AT_MOST
    assert "10.0 ms per step" in finding.summary
    assert finding.remedies[0].at


@pytest.mark.parametrize(("grouped_ms", "kind"), [(2.49, Healthy), (2.51, Finding)])
def test_both_sides_of_the_rate(grouped_ms: float, kind: type) -> None:
    assert Limits().reached == 0.5
    assert isinstance(example(grouped_ms=grouped_ms), kind)


@pytest.mark.parametrize(("total_ms", "kind"), [(199.0, Finding), (201.0, Healthy)])
def test_both_sides_of_the_share(total_ms: float, kind: type) -> None:
    assert Limits().share == 0.05
    assert isinstance(example(total_ms=total_ms), kind)


def test_a_regular_convolution_is_not_grouped() -> None:
    verdict = example(groups=1)
    assert isinstance(verdict, Healthy)
    assert verdict.summary == "The step runs no grouped convolution"


def test_without_a_regular_one_there_is_nothing_to_compare_with() -> None:
    operations = Operations.training(30.0, convolution("a", 8, 10.0), rest="ReluGrad")
    verdict = grouped_convolution.check(
        GroupedConvolutions.measure(operations), operations, Hardware(DeviceKind.GPU, "x")
    )
    assert isinstance(verdict, NotApplicable)


def test_short_calls_set_no_rate() -> None:
    """A regular convolution of 40 µs: launching takes a part of it."""
    assert isinstance(example(regular_ms=0.04), NotApplicable)


def test_a_cpu_is_not_judged() -> None:
    """Trap: oneDNN's kernels for groups are others."""
    operations = Operations.training(30.0, convolution("a", 8, 10.0), convolution("b", 1, 10.0))
    verdict = applied(
        grouped_convolution, GroupedConvolutions.measure(operations), operations, Hardware(DeviceKind.CPU, "x")
    )
    assert isinstance(verdict, NotApplicable)
