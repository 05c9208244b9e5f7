"""Which constant kernels are a column times a row, and which operations are looked at."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture import agent

BELL = np.exp(-(np.arange(-4.0, 5.0) ** 2) / 8.0)
BLUR = np.tile(np.outer(BELL, BELL)[:, :, None, None], (1, 1, 2, 1)).astype("float32")


def tensor(values: Any, op: Any = None, name: str = "float32") -> Any:
    shape = SimpleNamespace(rank=values.ndim, as_list=lambda: list(values.shape))
    return SimpleNamespace(shape=shape, dtype=SimpleNamespace(name=name), op=op)


def node(name: str, kind: str, values: Any, *inputs: Any, **attrs: Any) -> Any:
    op = SimpleNamespace(name=name, type=kind, inputs=list(inputs), get_attr=attrs.get)
    op.outputs = [tensor(values, op)]
    return op


def described(values: Any, *, kind: str = "DepthwiseConv2dNative", captured: bool = True) -> Any:
    """Describe a graph that convolves with a kernel, behind a cast."""
    content = b"" if captured else values.tobytes()
    made = node("kernel", "Placeholder" if captured else "Const", values)
    made.get_attr = {"value": SimpleNamespace(tensor_content=content)}.get
    cast = node("cast", "Cast", values, made.outputs[0])
    image = node("x", "Placeholder", values)
    used = node("blur", kind, values, image.outputs[0], cast.outputs[0])
    outer = SimpleNamespace(dtype=SimpleNamespace(name="float32"), _numpy=lambda: values)
    graph = SimpleNamespace(
        captures=[(outer, made.outputs[0])] if captured else [], get_operations=lambda: [made, cast, image, used]
    )
    return agent.load("program.kernels").describe(graph)


@pytest.mark.parametrize("captured", [True, False], ids=["captured", "constant"])
@pytest.mark.parametrize("shape", [(9, 9), (5, 9)])
def test_a_gaussian_is_separable(shape: tuple[int, int], captured: bool) -> None:  # noqa: FBT001
    values = np.ascontiguousarray(BLUR[: shape[0], : shape[1]])
    assert described(values, captured=captured) == [{"name": "kernel", "separable": True}]


@pytest.mark.parametrize(("part", "separable"), [(5e-5, True), (2e-4, False)])
def test_the_second_singular_value_decides(part: float, separable: bool) -> None:  # noqa: FBT001
    """The kernel has singular values of 1 and of this part, in its second channel."""
    values = np.zeros((2, 2, 2, 1), "float32")
    values[0, 0] = 1.0
    values[1, 1, 1] = part
    (found,) = described(values)
    assert found["separable"] is separable


def test_a_disk_and_a_kernel_of_zeros_are_not_separable() -> None:
    rows, columns = np.mgrid[-4:5, -4:5]
    disk = (rows**2 + columns**2 <= 16).astype("float32")[:, :, None, None]
    for values in (disk, np.zeros_like(disk)):
        assert described(values) == [{"name": "kernel", "separable": False}]


@pytest.mark.parametrize("values", [BLUR[:1], BLUR[:, :1], np.ones((300, 300, 1, 1), "float32")])
def test_lines_and_huge_kernels_are_left_out(values: Any) -> None:
    assert described(np.ascontiguousarray(values)) == []


def test_other_operations_and_kernels_that_are_not_constant_are_left_out() -> None:
    assert described(BLUR, kind="Conv2D") == []
    read = node("read", "ReadVariableOp", BLUR)
    used = node("blur", "DepthwiseConv2dNative", BLUR, read.outputs[0], read.outputs[0])
    graph = SimpleNamespace(captures=[], get_operations=lambda: [read, used])
    assert agent.load("program.kernels").describe(graph) == []


def test_a_constant_of_one_number_is_left_out() -> None:
    """TensorFlow stores the number once, and no content."""
    values = np.ones((9, 9, 1, 1), "float32")
    made = node("kernel", "Const", values)
    made.get_attr = {"value": SimpleNamespace(tensor_content=b"")}.get
    used = node("blur", "DepthwiseConv2dNative", values, made.outputs[0], made.outputs[0])
    graph = SimpleNamespace(captures=[], get_operations=lambda: [made, used])
    assert agent.load("program.kernels").describe(graph) == []
