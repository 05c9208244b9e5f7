"""The least time of matmuls with aligned widths, by real traces of an H100."""

import pytest

from tests.h100 import TIMED_MS, h100
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.rules.unaligned_dimension import AlignedTimes
from tfdoctor.terms.kinds import DeviceKind


@pytest.mark.parametrize("trace", ["convnet-bfloat16", "mlp-bfloat16-4000"])
def test_no_aligned_kernel_is_faster_than_the_rate_that_counts_as_reached(trace: str) -> None:
    chart = h100(trace)
    least = chart.fact(AlignedTimes).least_ms

    matmuls = [row for row in chart.fact(Operations).matrix if row.precision == "bfloat16"]
    assert all(least[row.name] < row.ms for row in matmuls)
    heavy = [row for row in matmuls if row.kernel and min(row.kernel[-2:]) >= 128]
    assert sum(least[row.name] for row in heavy) > 0.8 * sum(row.ms for row in heavy)


def test_clearing_the_padded_buffers_belongs_to_their_convolution() -> None:
    cleared = h100("convnet-bfloat16-130").fact(AlignedTimes).cleared_ms

    assert sum(cleared.values()) == pytest.approx(0.05 * TIMED_MS["convnet-bfloat16-130"], rel=0.1)
    assert all("/cudnn-conv" in name for name in cleared)


def test_other_devices_are_not_compared() -> None:
    chart = h100("convnet-bfloat16")
    parts = chart.fact(Operations), Hardware(DeviceKind.TPU, "x"), chart.fact(Activity)
    with pytest.raises(Unavailable, match="known GPUs"):
        AlignedTimes.measure(*parts, chart.fact(Steps))
