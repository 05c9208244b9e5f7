"""Depthwise convolutions with constant kernels: which are, their gradients and lines, and what is left of them."""

from typing import Any

import pytest

from tests.builders import chart, graph_operation, recording, trace
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.depthwise_convolution import FixedConvolution, FixedKernels

IMAGE, KERNEL = ["float32", [8, 64, 64, 2]], ["float32", [27, 27, 2, 1]]
DEPTHWISE = "DepthwiseConv2dNative"
BACKWARD = f"gradient_tape/blur/{DEPTHWISE}BackpropInput"


def measured(*kernel: dict[str, Any], names: Any = ("blur", BACKWARD), **graph: Any) -> Any:
    """Measure a graph of an image, a kernel whose last operation is the second input, and a convolution."""
    last = len(kernel)
    strides = graph.pop("strides", [1, 1, 1, 1])
    rows = [
        graph_operation("x", "Placeholder", [], [IMAGE]),
        *kernel,
        graph_operation(
            "blur", DEPTHWISE, [IMAGE, KERNEL], [IMAGE], at=["train.py", 44], direct=True,
            attrs={"strides": strides}, **{"from": [0, last]},
        ),
        graph_operation(BACKWARD, f"{DEPTHWISE}BackpropInput", [KERNEL], [IMAGE], at=["train.py", 90]),
    ]  # fmt: skip
    record = {"graphs": [{"kind": "function", "operations": rows, **graph}]}
    program: Program = chart(trace([]), recording(record)).fact(Program)
    times = tuple(
        OperationTime(
            name=name,
            type=DEPTHWISE + ("BackpropInput" if "grad" in name else ""),
            ms=1.0,
            operation=program.by_name.get(name),
        )
        for name in names
    )
    return Chart([program, Operations(times)]).fact(FixedKernels).rows


CAPTURED = graph_operation("kernel", "Placeholder", [], [KERNEL])
HELD = {"captured": ["kernel"], "kernels": [{"name": "kernel", "separable": True}]}


def test_a_captured_kernel_with_its_gradient() -> None:
    (found,) = measured(CAPTURED, **HELD)
    assert [row.name for row in found.rows] == ["blur", BACKWARD]
    assert (found.ms, found.size, found.separable, found.at.line) == (2.0, (27, 27), True, 44)
    assert found.left == pytest.approx(54 / 729)


@pytest.mark.parametrize(
    "more",
    [{"kernels": []}, {"kernels": [{"name": "kernel", "separable": False}]}, {"strides": [1, 2, 2, 1]}],
    ids=["unknown", "full", "strides"],
)
def test_other_captured_kernels_leave_all_arithmetic(more: dict[str, Any]) -> None:
    (found,) = measured(CAPTURED, **HELD | more)
    assert (found.separable, found.left) == (False, 1.0)


def test_a_kernel_that_the_step_computes_from_constants_and_shapes() -> None:
    """The window of tf.image.ssim is repeated for as many channels as the image has."""
    (found,) = measured(
        graph_operation("window", "Const", [], [KERNEL]),
        graph_operation("channels", "Shape", [IMAGE], [["int32", [4]]], **{"from": [0]}),
        graph_operation("Tile", "Tile", [KERNEL], [KERNEL], **{"from": [1, 2]}),
    )
    assert not found.separable


@pytest.mark.parametrize(
    "kernel",
    [
        [graph_operation("w", "Placeholder", [], [["resource", []]]),
         graph_operation("read", "ReadVariableOp", [["resource", []]], [KERNEL], **{"from": [1]})],
        [graph_operation("dynamic", "Mean", [IMAGE], [KERNEL], **{"from": [0]})],
        [graph_operation("noise", "RandomUniform", [], [KERNEL])],
    ],
    ids=["variable", "batch", "random"],
)  # fmt: skip
def test_trap_other_kernels_are_not_constant(kernel: list[dict[str, Any]]) -> None:
    assert measured(*kernel) == ()


def test_names_of_a_loop_that_runs_in_place() -> None:
    """The trace names them with the frames of the loop, and they have no operation of their own."""
    frame = "gradient_tape/map/while/map/while_grad/body/_99"
    names = (
        "map/while/body/_69/blur",
        f"{frame}/gradient_tape/map/while/gradients/blur_grad/{DEPTHWISE}BackpropInput",
        "map/while/body/_69/other",
    )
    (found,) = measured(CAPTURED, names=names, **HELD)
    assert [row.name for row in found.rows] == list(names[:2])


def test_what_is_left_is_never_more_than_all() -> None:
    assert FixedConvolution((), (2, 2), separable=True).left == 1.0
    assert FixedConvolution((), None, separable=True).left == 1.0
