"""The network whose training step the synthetic runs execute: a small convolutional classifier.

A strided convolution, three blocks of (depthwise and) regular convolution, a pointwise convolution,
pooling and two dense layers, named as Keras 3 names their operations.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import prod

Shape = tuple[int, ...]


class Kind(StrEnum):
    """What an operation is to the hardware."""

    CONVOLUTION = "convolution"
    MATMUL = "matmul"
    DEPTHWISE = "depthwise"
    BATCH_NORM = "batch norm"
    ELEMENTWISE = "elementwise"


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

    @property
    def tf_op(self) -> str:
        """The operation as a profiler writes it."""
        return f"{self.name}:{self.type}"

    @property
    def is_matrix(self) -> bool:
        """Whether a matrix unit runs it."""
        return self.kind in (Kind.CONVOLUTION, Kind.MATMUL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network's variable parts."""

    batch: int = 32
    size: int = 64  # of the square images
    width: int = 128  # channels
    batch_norm: str = "fused"  # "unfused", "none"
    depthwise: bool = False

    @property
    def image_bytes(self) -> int:
        """The size of a batch of float32 images."""
        return self.batch * self.size**2 * 3 * 4

    def training_step(self) -> tuple[Op, ...]:
        """Return the step's operations in order: forward, backward, update."""
        layers = list(self._layers())
        forward = [op for layer in layers for op in layer[0]]
        backward = [op for layer in reversed(layers) for op in layer[1]]
        return (*forward, *backward, *_update(self.width))

    def _layers(self) -> Iterable["Layer"]:
        half, width = self.size // 2, self.width
        wide = (self.batch, half, half, width)
        yield convolution("conv2d", (self.batch, self.size, self.size, 3), wide, 3, 10)
        for number in range(1, 4):
            yield from self._block(number, wide)
        narrow = (self.batch, half // 2, half // 2, 2 * width)
        yield convolution("conv2d_4", wide, narrow, 1, 20)
        yield elementwise("global_average_pooling2d", "Mean", "Tile", narrow, 21)
        yield dense("dense", self.batch, 2 * width, 512, 22)
        yield dense("dense_1", self.batch, 512, 10, 23)

    def _block(self, number: int, shape: Shape) -> Iterable["Layer"]:
        line = 9 + 3 * number
        if self.depthwise:
            yield depthwise(f"depthwise_conv2d_{number}", shape, line)
        yield convolution(f"conv2d_{number}", shape, shape, 3, line)
        if self.batch_norm != "none":
            make = fused_batch_norm if self.batch_norm == "fused" else unfused_batch_norm
            yield make(f"batch_normalization_{number}", shape, line + 1)
        yield elementwise(f"re_lu_{number}", "Relu", "ReluGrad", shape, line + 2)


Layer = tuple[list[Op], list[Op]]
"""The operations of a layer: forward and backward."""


def convolution(name: str, x: Shape, y: Shape, kernel: int, line: int) -> Layer:
    """Return a convolution and its two gradients; the first layer has no input gradient."""
    w = (kernel, kernel, x[-1], y[-1])
    flops = 2 * prod(y) * kernel**2 * x[-1]
    tape = f"gradient_tape/{name}/convolution"
    back = [
        Op(f"{tape}/Conv2DBackpropFilter", "Conv2DBackpropFilter", Kind.CONVOLUTION, (x, y), w, flops, line),
        Op(f"{tape}/Conv2DBackpropInput", "Conv2DBackpropInput", Kind.CONVOLUTION, (w, y), x, flops, line),
    ]  # fmt: skip
    forward = Op(f"{name}/convolution", "Conv2D", Kind.CONVOLUTION, (x, w), y, flops, line)
    return [forward], back if x[-1] > 3 else back[:1]  # noqa: PLR2004 - colours


def depthwise(name: str, x: Shape, line: int) -> Layer:
    """Return a 3 x 3 depthwise convolution and its gradients."""
    w, kind, kind_name = (3, 3, x[-1], 1), Kind.DEPTHWISE, "DepthwiseConv2dNative"
    flops = 2 * prod(x) * 9
    tape = f"gradient_tape/{name}/depthwise/{kind_name}"
    return [Op(f"{name}/depthwise", kind_name, kind, (x, w), x, flops, line)], [
        Op(f"{tape}BackpropInput", f"{kind_name}BackpropInput", kind, (w, x), x, flops, line),
        Op(f"{tape}BackpropFilter", f"{kind_name}BackpropFilter", kind, (x, x), w, flops, line),
    ]


def dense(name: str, batch: int, inputs: int, units: int, line: int) -> Layer:
    """Return a matmul and its two gradients."""
    x, w, y = (batch, inputs), (inputs, units), (batch, units)
    flops, kind = 2 * batch * inputs * units, Kind.MATMUL
    tape = f"gradient_tape/{name}/MatMul"
    return [Op(f"{name}/MatMul", "MatMul", kind, (x, w), y, flops, line)], [
        Op(f"{tape}/MatMul", "MatMul", kind, (y, w), x, flops, line),
        Op(f"{tape}/MatMul_1", "MatMul", kind, (x, y), w, flops, line),
    ]


def elementwise(name: str, forward: str, backward: str, x: Shape, line: int) -> Layer:
    """Return an operation that only reads and writes, and its gradient."""
    kind, flops = Kind.ELEMENTWISE, prod(x)
    return [Op(f"{name}/{forward}", forward, kind, (x,), x, flops, line)], [
        Op(f"gradient_tape/{name}/{backward}", backward, kind, (x, x), x, flops, line)
    ]


def fused_batch_norm(name: str, x: Shape, line: int) -> Layer:
    """Return the fused batch normalization and its gradient."""
    kind, flops = Kind.BATCH_NORM, 8 * prod(x)
    grad = "FusedBatchNormGradV3"
    return [Op(f"{name}/FusedBatchNormV3", "FusedBatchNormV3", kind, (x, x), x, flops, line)], [
        Op(f"gradient_tape/{name}/{grad}", grad, kind, (x, x, x), x, flops, line)
    ]


FORWARD = ("moments/mean:Mean", "moments/SquaredDifference", "moments/variance:Mean",
           "batchnorm/mul_1:Mul", "batchnorm/add_1:AddV2")  # fmt: skip
BACKWARD = ("batchnorm/add_1/Sum", "batchnorm/mul_1/Mul", "batchnorm/mul_1/Mul_1:Mul",
            "batchnorm/mul_1/Sum", "moments/truediv:RealDiv", "moments/BroadcastTo",
            "moments/sub:Sub", "moments/Mul", "moments/BroadcastTo_1:BroadcastTo")  # fmt: skip
"""The operations over whole activations that Keras 3.15 builds a batch normalization from."""


def unfused_batch_norm(name: str, x: Shape, line: int) -> Layer:
    """Return batch normalization as single operations, each over the whole activation."""

    def op(prefix: str, part: str) -> Op:
        path, _, kind = part.partition(":")
        kind = kind or path.rpartition("/")[2]
        whole = f"{prefix}{name}/{path}"
        return Op(whole, kind, Kind.BATCH_NORM, (x,), x, prod(x), line)

    return [op("", part) for part in FORWARD], [op("gradient_tape/", part) for part in BACKWARD]


def _update(width: int) -> list[Op]:
    weights = (3 * 9 * width * width,)
    kinds = ("Mul", "AssignSubVariableOp")
    return [
        Op(f"adam/{kind}", kind, Kind.ELEMENTWISE, (weights,), weights, weights[0], 30)
        for kind in kinds
    ]
