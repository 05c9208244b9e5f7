"""The layers of a network, named as Keras 3 names their operations."""

from math import prod

from scripts.synthetic.operation import Kind, Layer, Op, Shape


def convolution(name: str, x: Shape, y: Shape, kernel: int, line: int, groups: int = 1) -> Layer:
    """Return a convolution and its two gradients; the first layer has no input gradient."""
    w = (kernel, kernel, x[-1] // groups, y[-1])
    flops = 2 * prod(y) * kernel**2 * x[-1] // groups
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
    """Return an elementwise operation and its gradient."""
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
        full_name = f"{prefix}{name}/{path}"
        return Op(full_name, kind, Kind.BATCH_NORM, (x,), x, prod(x), line)

    return [op("", part) for part in FORWARD], [op("gradient_tape/", part) for part in BACKWARD]
