"""Grouped convolutions are told by their shapes."""

from typing import Any

import pytest

from tests.rules.cases.grouped_convolution import convolution
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Attributes, Operation
from tfdoctor.rules.grouped_convolution import GroupedConvolutions, groups_of

IMAGES, KERNEL, SIZES = (("float32", (8, 16, 16, 64)), ("float32", (3, 3, 16, 128)), ("int32", (4,)))
OUT = ("float32", (8, 16, 16, 128))


def row(kind: str, inputs: Any, outputs: Any, **attrs: Any) -> OperationTime:
    graph = Operation(name="c", type=kind, inputs=inputs, outputs=outputs, attrs=Attributes(**attrs))
    return OperationTime(name="c", type=kind, ms=1.0, operation=graph)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [
        ("Conv2D", (IMAGES, KERNEL), (OUT,)),
        ("Conv2DBackpropFilter", (IMAGES, SIZES, OUT), (KERNEL,)),
        ("Conv2DBackpropFilterV2", (IMAGES, KERNEL, OUT), (KERNEL,)),
        ("Conv2DBackpropInput", (SIZES, KERNEL, OUT), (IMAGES,)),
        ("Conv2DBackpropInputV2", (IMAGES, KERNEL, OUT), (IMAGES,)),
    ],
)
def test_the_forward_pass_and_both_gradients_have_the_same_groups(kind: str, inputs: Any, outputs: Any) -> None:
    assert groups_of(row(kind, inputs, outputs)) == 4


def test_channels_first() -> None:
    images = ("float32", (8, 64, 16, 16))
    first = row("Conv2D", (images, KERNEL), (OUT,), data_format="NCHW")
    assert groups_of(first) == 4


@pytest.mark.parametrize("channels", [None, 60])
def test_unknown_or_impossible_sizes_are_unknown(channels: int | None) -> None:
    images = ("float32", (8, 16, 16, channels))
    assert groups_of(row("Conv2D", (images, KERNEL), (OUT,))) is None


def test_convolutions_without_shapes_raise() -> None:
    with pytest.raises(Unavailable, match="shapes"):
        GroupedConvolutions.measure(Operations((row("Conv2D", (), ()),)))


def test_the_fastest_regular_convolution_sets_the_rate() -> None:
    rows = (convolution("a", 8, 1.0), convolution("b", 1, 2.0), convolution("c", 1, 4.0))
    found = GroupedConvolutions.measure(Operations(rows))
    assert found.groups == {"a": 8}
    assert found.regular_flop_s == pytest.approx((rows[1].flops or 0) / 2e-3)
