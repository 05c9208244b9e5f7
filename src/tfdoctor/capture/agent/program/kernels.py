"""Which constant kernels of depthwise convolutions are products of a column and a row, after the window."""

from __future__ import annotations

from .outside_tensors import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from ..process.declared import Foreign, Graph, GraphOperation

    class HeldKernel(TypedDict):
        """A kernel; `separable`: in each channel it is a column times a row."""

        name: str  # of its placeholder or constant in the graph
        separable: bool


DEPTHWISE = "DepthwiseConv2dNative"

PASSING = frozenset({"Cast", "Identity"})

MOST = 65_536  # Values of a kernel to look at, one by one in Python: 0.1 s
RANK = 4  # Height, width, channels and multiplier
# Largest size of what a column times a row leaves of a kernel, relative to the kernel: then the second singular
# value is at most as large, relative to the first. Rounding to float32 leaves 1e-7, to bfloat16 4e-3.
TOLERANCE = 1e-4


def describe(graph: Graph) -> list[HeldKernel]:
    """Return the constant kernels of a graph's depthwise convolutions that are wider and higher than one value."""
    made: list[GraphOperation] = getattr(graph, "get_operations", list)()
    used = {op.name: op for op in map(_kernel, made) if op is not None}
    captured = {name: value for value, name in held(graph)} if used else {}
    found = (_of(op, captured) for op in used.values())
    return [kernel for kernel in found if kernel]


def _kernel(op: GraphOperation) -> GraphOperation | None:
    """Return what makes the kernel of a depthwise convolution; None of other operations."""
    if op.type != DEPTHWISE:
        return None
    source = op.inputs[1].op
    while source.type in PASSING:
        source = source.inputs[0].op
    return source


def _of(op: GraphOperation, captured: Mapping[str, Foreign]) -> HeldKernel | None:
    shape = op.outputs[0].shape
    sizes = [int(size or 0) for size in shape.as_list()] if shape.rank == RANK else []
    if len(sizes) != RANK or min(sizes[:2]) < 2 or not 0 < _count(sizes) <= MOST:  # noqa: PLR2004 - a line
        return None
    values = _values(op, captured)
    if values is None or len(values) != _count(sizes):
        return None
    channels = sizes[2] * sizes[3]
    each = [values[channel::channels] for channel in range(channels)]
    return {"name": op.name, "separable": all(_is_separable(one, sizes[1]) for one in each)}


def _count(sizes: Sequence[int]) -> int:
    return sizes[0] * sizes[1] * sizes[2] * sizes[3]


def _values(op: GraphOperation, captured: Mapping[str, Foreign]) -> Sequence[float] | None:
    """Return the values of a captured tensor or a constant; None where they are not stored one by one."""
    if op.name in captured:
        values: list[float] = captured[op.name]._numpy().ravel().tolist()  # no operation, which would be traced
        return values
    content = getattr(op.get_attr("value"), "tensor_content", b"") if op.type == "Const" else b""
    is_float = op.outputs[0].dtype.name == "float32"
    return memoryview(content).cast("f").tolist() if is_float and len(content) % 4 == 0 else None


def _is_separable(kernel: Sequence[float], width: int) -> bool:
    """Say whether a kernel, row by row, is its column times its row through its largest value."""
    at = max(range(len(kernel)), key=lambda index: abs(kernel[index]))
    row, column = kernel[at - at % width :][:width], kernel[at % width :: width]
    if not kernel[at]:
        return False
    left = (value - column[index // width] * row[index % width] / kernel[at] for index, value in enumerate(kernel))
    return sum(one * one for one in left) <= TOLERANCE**2 * sum(one * one for one in kernel)
