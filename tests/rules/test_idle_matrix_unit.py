"""idle-matrix-unit: below 30 % of the peak, or most matrix time off the unit."""

from tests.rules.kit import *
from tfdoctor.rules.precision import idle_matrix_unit


def example(**figures: Any) -> Verdict:
    """Judge a TPU whose matmuls take 30 of 50 ms, with these figures."""
    parts: dict[str, Any] = {"unit": "MXU", "busy_ms": 50.0, "matrix_ms": 30.0}
    return idle_matrix_unit.check(MatrixUnit(**(parts | figures)))


sick = described("A TPU reaches 9 % of its peak.", example, utilization=0.09)
healthy = described("A TPU reaches 52 % of its peak.", example, matrix_ms=45.0, utilization=0.52)
check = partial(example, unit="Tensor Core", matrix_ms=40.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["below 30 % of the peak it claims no saving of its own"] = check(utilization=0.29), check(utilization=0.3)
    told["the unit is not used"] = check(utilization=0.0)
    told["the evidence shows where the time goes"] = check(utilization=0.1, matrix_rate=1e12, peak_flop_s=1e13)
    told["time off the unit: most, half, all, none"] = [
        check(on_unit_ms=40.0 - ms, off_unit_ms=ms) for ms in (21.0, 20.0, 40.0, 0.0)
    ]
    told["kernels of unknown names count for no side"] = check(on_unit_ms=3.0, off_unit_ms=2.0, unknown_ms=35.0)
    told[...] = check(on_unit_ms=0.0, off_unit_ms=0.0, unknown_ms=40.0)
    told["nothing is known"] = check()
    told["a tenth in matmuls, less, none"] = [
        check(matrix_ms=ms, on_unit_ms=0.0, off_unit_ms=ms) for ms in (5.0, 4.9, 0.0)
    ]
    told["without FLOPs sampled activity precedes names"] = check(active=0.29, on_unit_ms=40.0, off_unit_ms=0.0)
    told[...] = check(active=0.3, on_unit_ms=40.0, off_unit_ms=0.0)
    # 130 channels on an H100: Tensor Cores worked 38 % of the time, and reached 12 % of their peak
    told["activity on padding is no use"] = check(utilization=0.12, active=0.38)
