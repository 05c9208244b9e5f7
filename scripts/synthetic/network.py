"""The network whose training step the synthetic runs execute: a small convolutional classifier.

A strided convolution, three blocks of (depthwise and) regular convolution, a pointwise convolution,
pooling and two dense layers, named as Keras 3 names their operations.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from scripts.synthetic import costly_layers as costly
from scripts.synthetic.layers import (
    convolution,
    dense,
    depthwise,
    elementwise,
    fused_batch_norm,
    unfused_batch_norm,
)
from scripts.synthetic.operation import Kind, Layer, Op, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network's variable parts."""

    batch: int = 32
    size: int = 64  # of the square images
    width: int = 128  # channels
    batch_norm: str = "fused"  # "unfused", "none"
    depthwise: bool = False
    groups: int = 1  # into which the blocks' convolutions divide the channels
    deterministic: bool = False  # the filters' gradients run slow kernels, as a call asks for
    slow_groups: bool = False  # they take as long as without groups
    pointwise: bool = False  # the blocks' convolutions are 1 x 1, as behind depthwise ones
    activation: str = "relu"  # "gelu" of single operations, "compiled" gelu
    pooling: str = ""  # "max" or "average" ends each block
    scale: str = ""  # of the channels ends each block: "tiled" to full size, or "broadcast"
    layout: str = "last"  # of images that come channels "first"; "turned" in each block too
    recurrent: str = ""  # an LSTM over 16 time steps: "cudnn", or in a "loop"
    small_variables: int = 0  # of 64 values, which Adam updates beside the large ones

    @property
    def image_bytes(self) -> int:
        """The size of a batch of float32 images."""
        return self.batch * self.size**2 * 3 * 4

    @property
    def weights(self) -> int:
        """The values of the blocks' kernels."""
        return 3 * 9 * self.width * self.width

    def training_step(self) -> tuple[Op, ...]:
        """Return the step's operations in order: forward, backward, update."""
        layers = list(self._layers())
        forward = [op for layer in layers for op in layer[0]]
        backward = [op for layer in reversed(layers) for op in layer[1]]
        small = costly.small_updates(self.small_variables, 30)
        return (*forward, *backward, *_update(self.weights), *small)

    def _layers(self) -> Iterable[Layer]:
        half, width = self.size // 2, self.width
        images = (self.batch, self.size, self.size, 3)
        if self.layout != "last":
            yield costly.first_to_last("permute", images, 9)
        yield convolution("conv2d", images, (self.batch, half, half, width), 3, 10)
        for number in range(1, 4):
            yield from self._block(number, (self.batch, half, half, width))
            half = half // 2 if self.pooling else half
        narrow = (self.batch, max(1, half // 2), max(1, half // 2), 2 * width)
        yield convolution("conv2d_4", (self.batch, half, half, width), narrow, 1, 20)
        yield elementwise("global_average_pooling2d", "Mean", "Tile", narrow, 21)
        if self.recurrent:
            loop = self.recurrent == "loop"
            yield costly.lstm("lstm", (self.batch, 16, 2 * width), width, 21, loop=loop)
        yield dense("dense", self.batch, 2 * width, 512, 22)
        yield dense("dense_1", self.batch, 512, 10, 23)

    def _block(self, number: int, shape: Shape) -> Iterable[Layer]:
        line = 9 + 3 * number
        if self.depthwise:
            yield depthwise(f"depthwise_conv2d_{number}", shape, line)
        kernel = 1 if self.pointwise else 3
        layer = convolution(f"conv2d_{number}", shape, shape, kernel, line, self.groups)
        if self.slow_groups or self.deterministic:
            layer = costly.slow(layer, forward=self.slow_groups)
        yield layer
        if self.batch_norm != "none":
            make = fused_batch_norm if self.batch_norm == "fused" else unfused_batch_norm
            yield make(f"batch_normalization_{number}", shape, line + 1)
        if self.layout == "turned":
            yield costly.last_to_first(f"permute_{2 * number - 1}", shape, line + 2)
        yield self._activation(number, shape, line + 2)
        if self.layout == "turned":
            yield costly.first_to_last(f"permute_{2 * number}", shape, line + 2)
        if self.scale:
            yield costly.scale(f"scale_{number}", shape, line + 2, tiled=self.scale == "tiled")
        if self.pooling:
            yield costly.pooling(f"{self.pooling}_pooling2d_{number}", shape, line + 2, self.pooling)

    def _activation(self, number: int, shape: Shape, line: int) -> Layer:
        if self.activation == "gelu":
            return costly.gelu(f"activation_{number}", shape, line)
        if self.activation == "compiled":
            return costly.compiled(f"activation_{number}", shape, line)
        return elementwise(f"re_lu_{number}", "Relu", "ReluGrad", shape, line)


def _update(values: int) -> list[Op]:
    weights = (values,)
    kinds = ("Mul", "AssignSubVariableOp")
    return [Op(f"adam/{kind}", kind, Kind.ELEMENTWISE, (weights,), weights, weights[0], 30) for kind in kinds]
