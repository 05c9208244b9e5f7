"""The sizes of the matmuls and convolutions in XLA's programs: HLO's own, and the calls of GPU libraries.

On a GPU XLA replaces most of them by calls of cuBLAS, cuBLASLt and cuDNN: custom calls whose target names the
function. The dimensions of a matmul are then in the call's backend_config, as JSON; those of a convolution, of
its gradients too, are those of the forward convolution.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

from tfdoctor.terms.record import Record

MATMUL_OPERANDS = 2  # The first operands of a dot or a convolution are its factors
# The beginning of the targets of matmuls: __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8.
CUBLAS = "__cublas$"


class Pass(StrEnum):
    """Which part of a training step a convolution computes."""

    FORWARD = "forward"
    INPUT = "gradient of the input"
    FILTER = "gradient of the filter"


# The targets of convolutions (xla/service/gpu/cublas_cudnn.cc).
CUDNN = {
    "__cudnn$convForward": Pass.FORWARD,
    "__cudnn$convForwardGraph": Pass.FORWARD,
    "__cudnn$convBiasActivationForward": Pass.FORWARD,
    "__cudnn$convBackwardInput": Pass.INPUT,
    "__cudnn$convBackwardFilter": Pass.FILTER,
}


class Shape(Record):
    """The type, the sizes and the layout of an array; a tuple has several."""

    dtype: str  # "bf16", "f32"
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] = ()  # dimensions, fastest-varying first
    tiles: tuple[tuple[int, ...], ...] = ()  # T(8,128)(2,1): ((8, 128), (2, 1))
    space: int = 0  # memory space; 5 is the host's


class HloMatmul(Record):
    """The sizes of a dot or a convolution as a matmul: ``batch`` times m x k by k x n."""

    batch: int
    m: int
    n: int
    k: int
    window: int = 1  # positions of a convolution's kernel, each with k input features
    groups: int = 1  # of a grouped convolution
    dtype: str = ""  # of the first factor: "bf16"
    convolves: Pass | None = None  # None: it is a matmul; gradients have the sizes of the forward pass

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved alone; the gradient of such weights has one group per channel."""
        return self.groups > 1 and (self.k == 1 or self.groups == self.n)


def matmul_of(
    instruction: Any,  # noqa: ANN401 - a message
    operands: Sequence[tuple[Shape, ...]],
    result: tuple[Shape, ...],
) -> HloMatmul | None:
    """Return the sizes of a dot, a convolution or a library's call; None for any other instruction."""
    arrays = [*operands[:MATMUL_OPERANDS], result]
    if len(operands) < MATMUL_OPERANDS or not all(arrays):
        return None
    left, right, product = (shapes[0] for shapes in arrays)
    try:
        return _sizes(instruction, left, right, product)
    except (IndexError, KeyError, TypeError, ValueError):  # dimensions that the shapes lack: damage
        return None


def _sizes(instruction: Any, left: Shape, right: Shape, product: Shape) -> HloMatmul | None:  # noqa: ANN401
    target = instruction.custom_call_target
    if instruction.opcode == "dot":
        return _dot(instruction.dot_dimension_numbers, left, right)
    if target.startswith(CUBLAS):
        return _dot(_gemm(instruction.backend_config), left, right)
    if instruction.opcode == "convolution":
        return _convolution(instruction, left, right, product, Pass.FORWARD)
    convolved = CUDNN.get(target)
    if convolved is Pass.INPUT:
        return _convolution(instruction, left, right, left, convolved)
    if convolved is Pass.FILTER:
        return _convolution(instruction, left, product, right, convolved)
    return _convolution(instruction, left, right, product, convolved) if convolved else None


def _gemm(config: bytes) -> Any:  # noqa: ANN401 - as the message of a dot
    """Return the dimension numbers of a matmul from the settings of its call."""
    written = json.loads(config)
    numbers = written.get("gemm_backend_config", written)["dot_dimension_numbers"]
    names = ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting")
    return SimpleNamespace(
        **{f"{name}_dimensions": [int(axis) for axis in numbers.get(f"{name}_dimensions", ())] for name in names}
    )


def _dot(numbers: Any, left: Shape, right: Shape) -> HloMatmul:  # noqa: ANN401 - a message
    batch, inner = list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)
    not_n = [*numbers.rhs_batch_dimensions, *numbers.rhs_contracting_dimensions]
    return HloMatmul(
        _size(left, batch),
        _size(left, [axis for axis in range(len(left.dims)) if axis not in (*batch, *inner)]),
        _size(right, [axis for axis in range(len(right.dims)) if axis not in not_n]),
        _size(left, inner),
        dtype=left.dtype,
    )


def _convolution(
    instruction: Any,  # noqa: ANN401 - a message
    factor: Shape,
    kernel: Shape,
    output: Shape,
    convolved: Pass,
) -> HloMatmul:
    numbers = instruction.convolution_dimension_numbers
    positions = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    return HloMatmul(
        1,
        _size(output, positions),
        output.dims[numbers.output_feature_dimension],
        kernel.dims[numbers.kernel_input_feature_dimension],
        _size(kernel, list(numbers.kernel_spatial_dimensions)),
        max(1, instruction.feature_group_count, instruction.batch_group_count),
        factor.dtype,
        convolved,
    )


def _size(shape: Shape, axes: Sequence[int]) -> int:
    size = 1
    for axis in axes:
        size *= shape.dims[axis]
    return size
