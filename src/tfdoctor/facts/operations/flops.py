"""How much an operation computes and moves, from the shapes that the program or the trace recorded."""

import re
from math import prod

from tfdoctor.facts.run.operation_types import CONVOLUTIONS, DEPTHWISE, MATMULS
from tfdoctor.facts.run.program import Operation, Program

Sizes = tuple[int, ...]

KNOWN = CONVOLUTIONS | DEPTHWISE | (MATMULS - {"XlaDotV2"})  # whose dimensions it names itself


def nbytes_of(operation: Operation | None, program: Program) -> float | None:
    """Return the bytes of all operands and results."""
    sizes = [program.nbytes(t) for t in (*operation.inputs, *operation.outputs)] if operation else []
    known = [size for size in sizes if size is not None]
    return float(sum(known)) if known and len(known) == len(sizes) else None


def flops_of(kind: str, operation: Operation | None, program: Program) -> float | None:
    """Return 2 x the multiplications of a matmul or convolution; None when a size is not known."""
    if operation is None or kind not in KNOWN:
        return None
    if kind in CONVOLUTIONS or kind in DEPTHWISE:
        return _convolution_flops(kind, operation, program)
    shapes = [program.shape(shape) for _, shape in operation.inputs]
    if kind == "Einsum":
        return einsum_flops(operation.attrs.equation, shapes)
    a, b = shapes[:2] if len(shapes) > 1 else (None, None)
    if not a or not b or min(len(a), len(b)) < 2:  # noqa: PLR2004 - matrices
        return None
    if out := program.shape(operation.outputs[0][1]) if operation.outputs else None:
        turned = operation.attrs.transpose_a if kind == "MatMul" else operation.attrs.adj_x
        return 2.0 * prod(out) * (a[-2] if turned else a[-1])
    return shared_dimension_flops(a, b)


def shared_dimension_flops(a: Sizes, b: Sizes) -> float | None:
    """Return the FLOPs of a matmul from its factors' shapes alone, either of which may be transposed.

    None when the factors share several dimensions of different sizes, so that the result is ambiguous.
    """
    if a[:-2] != b[:-2]:  # broadcast batches: the result's size is needed
        return None
    shared = {size for size in a[-2:] if size in b[-2:]}
    if len(shared) != 1:
        return None
    inner = shared.pop()
    return 2.0 * prod(a[:-2]) * (prod(a[-2:]) / inner) * (prod(b[-2:]) / inner) * inner


def einsum_flops(equation: str, shapes: list[Sizes | None]) -> float | None:
    """Return 2 x the product of all indices' sizes of a two-operand einsum ("abc,cde->abde").

    A one-operand einsum multiplies nothing: 0. None for other equations or unknown sizes; batch
    dimensions under an ellipsis are counted once, with the larger of their sizes.
    """
    terms = re.fullmatch(r"([a-zA-Z.]+)(?:,([a-zA-Z.]+))?->([a-zA-Z.]*)", equation.replace(" ", ""))
    operands = [term for term in terms.groups()[:2] if term] if terms else []
    if not operands or len(operands) != len(shapes) or any(shape is None for shape in shapes):
        return None
    if len(operands) == 1:
        return 0.0
    sizes: dict[str, int] = {}
    for term, shape in zip(operands, shapes, strict=True):
        named = _indices(term, shape or ())
        if named is None:
            return None
        for index, size in named.items():
            sizes[index] = max(size, sizes.get(index, 1))
    return 2.0 * prod(sizes.values())


def _indices(term: str, shape: Sizes) -> dict[str, int] | None:
    """Return the size of each index of an einsum's operand; those of an ellipsis are numbered from the right."""
    if "..." in term:
        before, after = term.split("...")
        hidden = len(shape) - len(before) - len(after)
        letters = [*before, *(f"...{hidden - at}" for at in range(hidden)), *after]
    else:
        letters = [*term]
    return dict(zip(letters, shape, strict=True)) if len(letters) == len(shape) else None


def _convolution_flops(kind: str, operation: Operation, program: Program) -> float | None:
    """Count 2 x output positions x the kernel; the gradients multiply as often as the forward pass.

    The kernel holds the input channels of one group only, so this holds for grouped convolutions too.
    """
    inputs, outputs = operation.inputs, operation.outputs
    kernels = outputs[:1] if "Filter" in kind else inputs[1:2]
    results = inputs[2:3] if "Backprop" in kind else outputs[:1]
    kernel = program.shape(kernels[0][1]) if kernels else None
    output = program.shape(results[0][1]) if results else None
    if not kernel or not output:
        return None
    channels = output[1] if operation.attrs.data_format.startswith("NC") else output[-1]
    positions = prod(output) / channels if channels else 0
    return 2.0 * positions * prod(kernel)
