"""An operation of a training step: what it reads, writes and multiplies."""

from dataclasses import dataclass
from enum import StrEnum

Shape = tuple[int, ...]


class Kind(StrEnum):
    """What an operation is to the hardware."""

    CONVOLUTION = "convolution"
    MATMUL = "matmul"
    DEPTHWISE = "depthwise"
    SLOW = "slow"  # a convolution whose kernels are slow: of groups, or deterministic ones
    BATCH_NORM = "batch norm"
    ELEMENTWISE = "elementwise"
    POOLING = "pooling"
    LAYOUT = "layout"  # turns a tensor around
    FUSED = "fused"  # a chain that XLA compiled into one kernel; on GPUs


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of the training step."""

    name: str  # "conv2d_1/convolution"
    type: str  # "Conv2D"
    kind: Kind
    operands: tuple[Shape, ...]
    result: Shape
    flops: int
    line: int  # of train.py
    source: str = ""  # the operation that makes its last operand; "" where the one before it makes the first

    trial: int = 0  # of cuDNN's algorithms, this is only tried; 0: the one that is kept

    @property
    def tf_op(self) -> str:
        """The operation as a profiler writes it."""
        return f"{self.name}:{self.type}"

    @property
    def is_matrix(self) -> bool:
        """Whether a matrix unit runs it."""
        return self.kind in (Kind.CONVOLUTION, Kind.MATMUL, Kind.SLOW)


Layer = tuple[list[Op], list[Op]]
"""The operations of a layer: forward and backward."""
