"""The roofline: rates and limits by hand."""

import json
from dataclasses import replace

import pytest

from tests.report.diagnoses import operations
from tfdoctor.diagnosis.work import DeviceRates, OperationRow
from tfdoctor.report.roofline import figure, limit_at

RATES = DeviceRates(flop_s=1e14, bytes_s=1e12)


def test_the_limit_is_the_smaller_of_compute_and_memory() -> None:
    assert limit_at(10.0, RATES) == 1e13
    assert limit_at(1000.0, RATES) == 1e14
    assert limit_at(10.0, replace(RATES, bytes_s=None)) == 1e14
    assert limit_at(10.0, DeviceRates()) is None


def test_the_table_says_what_each_operation_reaches() -> None:
    """2.4 ms with 4.8e11 FLOPs and 3.6e9 bytes: 2e14 FLOP/s at 133 FLOP per byte, of 1e14."""
    found = figure(operations(), RATES)
    assert found is not None
    assert found.table.rows[0] == ("conv2_block1", "Conv2D", "2.40 ms", "133", "200 TFLOP/s", "200 %")
    assert "The level line is the 16-bit peak, 100 TFLOP/s." in found.description


@pytest.mark.parametrize("rates", [None, RATES])
def test_without_rates_or_flops_there_is_no_picture(rates: DeviceRates | None) -> None:
    rows = [replace(row, flops=None) for row in operations()] if rates else operations()
    assert figure(rows, rates) is None


def test_numbers_that_are_none_make_no_point() -> None:
    bad = [
        OperationRow(layer="a", operation="MatMul", self_ms=time, share=0.1, flops=1.0, nbytes=1.0)
        for time in (0.0, float("nan"))
    ]
    assert figure([*bad, *operations()[:1]], RATES) is None


def test_the_heaviest_point_has_its_name_beside_it() -> None:
    """The others lie at the same place."""
    found = figure(operations(), RATES)
    assert found is not None
    labels = json.loads(found.figure)["data"][0]["text"]
    assert labels[:2] == ["conv2_block1<br>Conv2D", ""]
