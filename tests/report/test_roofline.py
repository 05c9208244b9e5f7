"""The roofline: rates and limits by hand, and labels where they fit: none hides a point or another label."""

import json
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.diagnoses import operations
from tfdoctor.diagnosis.work import DeviceRates, OperationRow
from tfdoctor.report.pictures.roofline import (
    HEIGHT,
    MOST,
    WIDTH,
    LabelledPoint,
    figure,
    label_boxes,
    limit_at,
    mark,
    meets,
    positions,
)

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


def test_an_operation_without_a_name_has_a_point() -> None:
    """No trace has one, an edited report may."""
    assert figure([replace(row, layer="", operation="") for row in operations()], RATES) is not None


def test_the_heaviest_point_has_its_name_beside_it() -> None:
    """The others lie at the same place."""
    found = figure(operations(), RATES)
    assert found is not None
    labels = json.loads(found.figure)["data"][0]["text"]
    assert labels[:2] == ["conv2_block1<br>Conv2D", ""]


shares = st.floats(0.0, 1.0)
points = st.lists(
    st.tuples(shares, shares, st.floats(8.0, 28.0), st.tuples(st.text("x", min_size=1, max_size=36))), max_size=40
)


def test_a_point_alone_has_its_label_where_there_is_room() -> None:
    left, right = ((at, 0.5, 10.0, ("conv2d_1", "Conv2D")) for at in (0.05, 0.95))
    assert positions([left, right]) == ["middle right", "middle left"]


def test_of_points_at_one_place_none_has_a_label_on_another() -> None:
    same = (0.5, 0.5, 10.0, ("conv2d_1", "Conv2D"))
    found = positions([same] * 9)
    assert found[:2] == ["middle right", "middle left"]
    assert found[4:] == [""] * 5


@given(points)
def test_labels_lie_within_the_axes_and_apart(made: list[LabelledPoint]) -> None:
    found = positions(made)
    labels = [
        (at, label_boxes(point)[where]) for at, (point, where) in enumerate(zip(made, found, strict=True)) if where
    ]
    assert len(labels) <= MOST
    assert all(box[0] >= 0 and box[1] <= WIDTH and box[2] >= 0 and box[3] <= HEIGHT for _, box in labels)
    assert not any(meets(one, other) for (_, one), (_, other) in combinations(labels, 2))
    assert not any(meets(box, mark(point)) for own, box in labels for at, point in enumerate(made) if at != own)
