"""The cases of idle-matrix-unit: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.precision.idle_matrix_unit import check


def example(**figures: Any) -> Verdict:
    """Judge a TPU whose matmuls take 30 of 50 ms, with these figures."""
    parts: dict[str, Any] = {"unit": "MXU", "busy_ms": 50.0, "matrix_ms": 30.0}
    return check(MatrixUnit(**(parts | figures)))


def sick() -> Verdict:
    """A TPU reaches 9 % of its peak."""
    return example(utilization=0.09)


def healthy() -> Verdict:
    """A TPU reaches 52 % of its peak."""
    return example(matrix_ms=45.0, utilization=0.52)
