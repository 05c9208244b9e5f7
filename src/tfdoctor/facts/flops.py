"""How much an operation computes and moves, from the shapes that the program recorded."""

from math import prod

from tfdoctor.facts.operation_types import CONVOLUTIONS, DEPTHWISE
from tfdoctor.facts.program import Operation, Program, Tensor


def nbytes_of(operation: Operation | None, program: Program) -> float | None:
    """Return the bytes of all operands and results."""
    sizes = (
        [program.nbytes(t) for t in (*operation.inputs, *operation.outputs)] if operation else []
    )
    known = [size for size in sizes if size is not None]
    return float(sum(known)) if known and len(known) == len(sizes) else None


def flops_of(kind: str, operation: Operation | None, program: Program) -> float | None:
    """Return 2 x the multiplications of a matmul or convolution."""
    if operation is None:
        return None
    if kind in CONVOLUTIONS or kind in DEPTHWISE:
        return _convolution_flops(kind, operation, program)
    if kind == "MatMul" and len(operation.inputs) > 1 and operation.outputs:
        a, out = program.shape(operation.inputs[0][1]), program.shape(operation.outputs[0][1])
        if a and out:
            inner = a[0] if operation.attrs.get("transpose_a") else a[-1]
            return 2.0 * prod(out) * inner
    return None


def _convolution_flops(kind: str, operation: Operation, program: Program) -> float | None:
    """Count 2 x output positions x the kernel; the gradients multiply as often as the forward pass."""
    small, large = _kernel_and_output(kind, operation)
    kernel, output = (
        program.shape(small[1]) if small else None,
        program.shape(large[1]) if large else None,
    )
    if not kernel or not output:
        return None
    layout = str(operation.attrs.get("data_format", "NHWC"))
    channels = output[1] if layout.startswith("NC") else output[-1]
    positions = prod(output) / channels if channels else 0
    return 2.0 * positions * prod(kernel)


def _kernel_and_output(kind: str, operation: Operation) -> tuple[Tensor | None, Tensor | None]:
    inputs, outputs = operation.inputs, operation.outputs
    if "Backprop" not in kind:
        return (inputs[1] if len(inputs) > 1 else None), (outputs[0] if outputs else None)
    gradient = inputs[2] if len(inputs) > 2 else None  # noqa: PLR2004
    if "Filter" in kind:
        return (outputs[0] if outputs else None), gradient
    return (inputs[1] if len(inputs) > 1 else None), gradient
