"""idle-matrix-unit: below 30 % of the peak, or most matrix time off the unit."""

from functools import partial

import pytest

from tests.rules.cases.idle_matrix_unit import example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.terms.verdict import Finding, Healthy, Measure, NotApplicable, Severity

check = partial(example, unit="Tensor Core", matrix_ms=40.0)


@pytest.mark.parametrize(("use", "kind"), [(0.30, Healthy), (0.29, Finding), (0.0, Finding)])
def test_use_by_flops(use: float, kind: type) -> None:
    assert isinstance(check(utilization=use), kind)


@pytest.mark.parametrize(
    ("on", "off", "kind"),
    [(20.0, 20.0, Healthy), (19.0, 21.0, Finding), (0.0, 40.0, Finding), (40.0, 0.0, Healthy)],
)
def test_use_by_kernels(on: float, off: float, kind: type) -> None:
    assert isinstance(check(on_unit_ms=on, off_unit_ms=off), kind)


def test_kernels_with_unknown_names_count_for_neither_side() -> None:
    finding = as_healthy(check(on_unit_ms=3.0, off_unit_ms=2.0, unknown_ms=35.0))
    unknown = [m.value.value for m in finding.evidence if isinstance(m, Measure) and "unknown" in m.label]
    assert unknown == [35.0]


def test_when_no_kernel_is_known_nothing_is_said() -> None:
    assert isinstance(check(on_unit_ms=0.0, off_unit_ms=0.0, unknown_ms=40.0), NotApplicable)
    assert isinstance(check(), NotApplicable)


def test_a_step_without_matmuls_is_healthy() -> None:
    assert isinstance(check(matrix_ms=0.0), Healthy)


@pytest.mark.parametrize(("matrix_ms", "kind"), [(5.0, Finding), (4.9, Healthy)])
def test_few_matmuls_are_not_judged(matrix_ms: float, kind: type) -> None:
    assert isinstance(check(matrix_ms=matrix_ms, on_unit_ms=0.0, off_unit_ms=matrix_ms), kind)


def test_it_claims_no_saving_of_its_own() -> None:
    finding = as_finding(check(utilization=0.1))
    assert finding.effects == ()
    assert finding.severity is Severity.NOTE


def test_the_evidence_shows_where_the_time_goes() -> None:
    finding = as_finding(check(utilization=0.1, matrix_rate=1e12, peak_flop_s=1e13))
    values = {m.label: m.value.value for m in finding.evidence if isinstance(m, Measure)}
    assert values["time in other operations, which the unit cannot run"] == 10.0
    assert values["FLOP rate of the matmuls and convolutions"] == 1e12


@pytest.mark.parametrize(("active", "kind"), [(0.30, Healthy), (0.29, Finding)])
def test_without_flops_the_sampled_activity_counts_before_names(active: float, kind: type) -> None:
    assert isinstance(check(active=active, on_unit_ms=40.0, off_unit_ms=0.0), kind)


def test_activity_on_padding_is_no_use() -> None:
    """130 channels on an H100: Tensor Cores worked 38 % of the time, and reached 12 % of their peak."""
    finding = as_finding(check(utilization=0.12, active=0.38))
    assert any("padding too" in m.label for m in finding.evidence if isinstance(m, Measure))
