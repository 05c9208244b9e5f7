"""The cases of sample-weight-scan: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.sample_weight_scan import check
from tfdoctor.rules.run.sample_weight_scan.weight_scans import WeightScan, WeightScans


def example(ms_of_scans: float = 40_000.0, total_ms: float = 90_000.0) -> Verdict:
    """Keras looks through 130,000 weights for 40 of 90 s."""
    scan = WeightScan(Location("train.py", 31), ms_of_scans, round(ms_of_scans / 50))
    lines = (scan,) if scan.samples else ()
    return check(WeightScans(lines), divided_run(total_ms, {Phase.PREPARING: ms_of_scans}))


sick = example


def healthy() -> Verdict:
    """The weights are in a list."""
    return example(0.0)
