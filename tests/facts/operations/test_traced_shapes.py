"""Shapes of a run without program record, from what the profiler wrote beside operations and memory."""

from typing import Any

import pytest

from tests.builders import Machine, Row, chart, line, markers, trace, v100
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.shapes import TracedShapes, parse

X, W, Y = "float[2,8,8,3]", "float[3,3,3,16]", "[2,4,4,16]"
POSITIONS = 2 * 4 * 4
CONVOLUTION = 2 * POSITIONS * 9 * 3 * 16


def kernel(operation: str, shape: str, start: float = 0) -> Row:
    return ("volta_sgemm_nn", start, start + 1, {"tf_op": operation, "shape": shape})


def allocation(operation: str, shape: str, dtype: int = 1, at: float = 0) -> Row:
    stats = {"tf_op": operation, "shape": shape, "data_type": dtype}
    return ("MemoryAllocation", at, at, stats)


def measured(*kernels: Row, memory: tuple[Row, ...] = ()) -> tuple[OperationTime, ...]:
    gpu: Machine = v100(line("Stream #1", *kernels))
    host: list[Any] = [markers(1, 100), line("tf_Compute", *memory)]
    return chart(trace(host, gpus=[gpu])).fact(Operations).rows


def test_a_products_flops_and_dimensions() -> None:
    (row,) = measured(kernel("m/d/MatMul:MatMul", "(half[32,100];half[100,10])"))
    assert row.flops == 2 * 32 * 100 * 10
    assert row.kernel == (100, 10)
    assert row.precision == "float16"


def test_the_gradient_by_a_convolutions_input_needs_no_more() -> None:
    operation = "g/Conv2DBackpropInput:Conv2DBackpropInput"
    (row,) = measured(kernel(operation, f"(int32[4];{W};float{Y})"))
    assert row.flops == CONVOLUTION
    assert row.kernel == (3, 3, 3, 16)


def test_a_convolution_needs_its_result_from_memory() -> None:
    one = kernel("m/c/Conv2D:Conv2D", f"({X};{W})")
    assert measured(one)[0].flops is None
    (row,) = measured(one, memory=(allocation("m/c/Conv2D", Y),))
    assert row.flops == CONVOLUTION
    assert row.nbytes == 4 * (2 * 8 * 8 * 3 + 3 * 3 * 3 * 16 + POSITIONS * 16)


def test_scratch_beside_a_result_cannot_be_told_from_it() -> None:
    one = kernel("m/c/Conv2D:Conv2D", f"({X};{W})")
    padded = allocation("m/c/Conv2D", "[2,10,10,3]")
    assert measured(one, memory=(allocation("m/c/Conv2D", Y), padded))[0].flops is None
    workspace = allocation("m/c/Conv2D", "[1048576]", dtype=4)
    found = measured(one, memory=(allocation("m/c/Conv2D", Y), workspace))
    assert found[0].flops == CONVOLUTION


def test_operations_whose_runs_differ_have_no_shape() -> None:
    name = "m/d/MatMul:MatMul"
    rows = measured(
        kernel(name, "(float[32,100];float[100,10])"), kernel(name, "(float[7,100];float[100,10])", start=2)
    )
    assert [row.flops for row in rows] == [None]


def test_a_gradients_weights_are_not_its_operand_of_sizes() -> None:
    operation = "g/Conv2DBackpropFilter:Conv2DBackpropFilter"
    (row,) = measured(kernel(operation, f"({X};int32[4];float{Y})"))
    assert (row.kernel, row.flops) == (None, None)


def test_a_trace_without_shapes_has_none() -> None:
    found = chart(trace([markers(1, 9)], gpus=[v100(line("Stream #1", ("k", 0, 1)))]))
    assert found.fact(TracedShapes).operations == {}


@pytest.mark.parametrize(
    ("text", "tensors"),
    [
        ("(float[2,3];int32[4])", (("float32", (2, 3)), ("int32", (4,)))),
        ("(bfloat16[])", (("bfloat16", ()),)),
        ("(half[2,?])", None),
        ("(float[2,3];)", None),
        ("", None),
        ("<unknown>", None),
    ],
)
def test_texts_of_shapes(text: str, tensors: object) -> None:
    assert parse(text) == tensors
