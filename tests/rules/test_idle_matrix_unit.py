"""idle-matrix-unit: below 30 % of the peak, or most matrix time off the unit."""

from tests.rules.kit import *
from tfdoctor.rules.precision import idle_matrix_unit


def example(**figures: Any) -> Verdict:
    """Judge a TPU whose matmuls take 30 of 50 ms, with these figures."""
    parts: dict[str, Any] = {"unit": "MXU", "busy_ms": 50.0, "matrix_ms": 30.0}
    return idle_matrix_unit.check(MatrixUnit(**(parts | figures)))


def sick() -> Verdict:
    """A TPU reaches 9 % of its peak."""
    return example(utilization=0.09)


def healthy() -> Verdict:
    """A TPU reaches 52 % of its peak."""
    return example(matrix_ms=45.0, utilization=0.52)


check = partial(example, unit="Tensor Core", matrix_ms=40.0)

test_both_sides_of_each_limit = each_is(
    (check(utilization=0.30), Healthy),
    (check(utilization=0.29), Finding),
    (check(utilization=0.0), Finding),
    (check(on_unit_ms=20.0, off_unit_ms=20.0), Healthy),
    (check(on_unit_ms=19.0, off_unit_ms=21.0), Finding),
    (check(on_unit_ms=0.0, off_unit_ms=40.0), Finding),
    (check(on_unit_ms=40.0, off_unit_ms=0.0), Healthy),
    (check(on_unit_ms=0.0, off_unit_ms=0.0, unknown_ms=40.0), NotApplicable),
    (check(), NotApplicable),
    (check(matrix_ms=0.0), Healthy),
    (check(matrix_ms=5.0, on_unit_ms=0.0, off_unit_ms=5.0), Finding),
    (check(matrix_ms=4.9, on_unit_ms=0.0, off_unit_ms=4.9), Healthy),
    # Without FLOPs the sampled activity counts before names
    (check(active=0.30, on_unit_ms=40.0, off_unit_ms=0.0), Healthy),
    (check(active=0.29, on_unit_ms=40.0, off_unit_ms=0.0), Finding),
)


def test_kernels_with_unknown_names_count_for_neither_side() -> None:
    healthy = as_healthy(check(on_unit_ms=3.0, off_unit_ms=2.0, unknown_ms=35.0))
    assert [*figures(healthy, "unknown").values()] == [35.0]


def test_it_claims_no_saving_of_its_own() -> None:
    finding = as_finding(check(utilization=0.1))
    assert finding.effects == ()
    assert finding.severity is Severity.NOTE


def test_the_evidence_shows_where_the_time_goes() -> None:
    finding = as_finding(check(utilization=0.1, matrix_rate=1e12, peak_flop_s=1e13))
    values = figures(finding)
    assert values["time in other operations, which the unit cannot run"] == 10.0
    assert values["FLOP rate of the matmuls and convolutions"] == 1e12


def test_activity_on_padding_is_no_use() -> None:
    """130 channels on an H100: Tensor Cores worked 38 % of the time, and reached 12 % of their peak."""
    finding = as_finding(check(utilization=0.12, active=0.38))
    assert figures(finding, "padding too")
