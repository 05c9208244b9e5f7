"""Layers and updates that cost more than necessary, and their cheaper replacements."""

from dataclasses import replace
from math import prod

from scripts.synthetic.operation import Kind, Layer, Op, Shape

GELU = (("mul", "Mul", 1), ("truediv", "RealDiv", 1), ("Erf", "Erf", 1), ("add", "AddV2", 1),
        ("mul_1", "Mul", 2))  # fmt: skip
GELU_GRADIENT = (
    ("mul_1/Mul", "Mul", 2), ("mul_1/Mul_1", "Mul", 2), ("Square", "Square", 1), ("Neg", "Neg", 1),
    ("Exp", "Exp", 1), ("Mul", "Mul", 1), ("Mul_1", "Mul", 2), ("truediv/RealDiv", "RealDiv", 1),
    ("mul/Mul", "Mul", 1), ("AddN", "AddN", 2),
)  # fmt: skip
"""Path, type and number of full-size operands in `tf.nn.gelu`: x / 2 * (1 + erf(x / sqrt(2)))."""

ADAM = ("Sub", "Mul", "AssignAddVariableOp", "Square", "Sub", "Mul", "AssignAddVariableOp", "Mul",
        "Sqrt", "AddV2", "RealDiv", "AssignSubVariableOp")  # fmt: skip
"""The operations of Keras 3's Adam for each variable."""

SMALL = 64
"""Values of a small variable, such as a bias."""


def gelu(name: str, x: Shape, line: int) -> Layer:
    """Return an activation as a chain of single operations."""

    def op(prefix: str, path: str, kind: str, operands: int) -> Op:
        full_name = f"{prefix}{name}/Gelu/{path}"
        return Op(full_name, kind, Kind.ELEMENTWISE, (x,) * operands, x, prod(x), line)

    return [op("", *part) for part in GELU], [op("gradient_tape/", *part) for part in GELU_GRADIENT]


def compiled(name: str, x: Shape, line: int) -> Layer:
    """Return the activation as one kernel for each direction; the backward kernel reads x and the gradient."""
    kind, launch = Kind.FUSED, "XlaLaunch"
    return [Op(f"{name}/{launch}", launch, kind, (x,), x, prod(x), line)], [
        Op(f"gradient_tape/{name}/{launch}", launch, kind, (x, x), x, prod(x), line)
    ]


def pooling(name: str, x: Shape, line: int, kind: str) -> Layer:
    """Return a 2 x 2 pooling; the gradient of max pooling reads its input and output again."""
    y = (x[0], x[1] // 2, x[2] // 2, x[3])
    forward, operands = ("MaxPool", (x, y, y)) if kind == "max" else ("AvgPool", (y,))
    back = f"{forward}Grad"
    back_name = f"gradient_tape/{name}/{forward}2d/{back}"
    return [Op(f"{name}/{forward}2d", forward, Kind.POOLING, (x,), y, prod(x), line)], [
        Op(back_name, back, Kind.POOLING, operands, x, prod(x), line)
    ]


def slow(layer: Layer, *, forward: bool) -> Layer:
    """Return a convolution whose gradients, or all of it, run kernels of an eighth of the usual rate."""
    kernels = [[replace(op, kind=Kind.SLOW) for op in ops] for ops in layer]
    return (kernels[0] if forward else layer[0]), kernels[1]


def scale(name: str, x: Shape, line: int, *, tiled: bool) -> Layer:
    """Return the multiplication by a factor for each channel and example, which may be tiled first."""
    factor, kind, flops = (x[0], 1, 1, x[3]), Kind.ELEMENTWISE, prod(x)
    multiplier = x if tiled else factor
    tape, parent = f"gradient_tape/{name}", "Tile" if tiled else "mul"
    tile = Op(f"{name}/Tile", "Tile", kind, (factor,), x, flops, line)
    source = tile.name if tiled else ""
    multiply = Op(f"{name}/mul", "Mul", kind, (x, multiplier), x, flops, line, source)
    return [tile, multiply] if tiled else [multiply], [
        Op(f"{tape}/mul/Mul", "Mul", kind, (x, multiplier), x, flops, line, source),
        Op(f"{tape}/mul/Mul_1", "Mul", kind, (x, x), x, flops, line),
        Op(f"{tape}/{parent}/Sum", "Sum", kind, (x,), factor, flops, line),
    ]


def first_to_last(name: str, x: Shape, line: int) -> Layer:
    """Return the transposition from NCHW to NHWC, whose shape is ``x``; images have no gradient."""
    return _transpose(name, (x[0], x[3], x[1], x[2]), x, line, trained=name != "permute")


def last_to_first(name: str, x: Shape, line: int) -> Layer:
    """Return the transposition from NHWC, whose shape is ``x``, to NCHW."""
    return _transpose(name, x, (x[0], x[3], x[1], x[2]), line, trained=True)


def _transpose(name: str, x: Shape, y: Shape, line: int, *, trained: bool) -> Layer:
    kind, path = Kind.LAYOUT, f"{name}/transpose"
    back = Op(f"gradient_tape/{path}/transpose", "Transpose", kind, (y,), x, 0, line)
    return [Op(path, "Transpose", kind, (x,), y, 0, line)], [back] if trained else []


def small_updates(variables: int, line: int) -> list[Op]:
    """Return Adam's operations for so many small variables."""
    shape = (SMALL,)
    return [
        Op(f"adam/{kind}_{variable}_{number}", kind, Kind.ELEMENTWISE, (shape,), shape, SMALL, line)
        for variable in range(variables)
        for number, kind in enumerate(ADAM)
    ]


CELL = ("MatMul", "MatMul_1", "add", "split", "Sigmoid", "Sigmoid_1", "Tanh", "mul", "mul_1", "add_1",
        "Sigmoid_2", "Tanh_1", "mul_2")  # fmt: skip
"""The operations of an LSTM's cell in Keras 3, for each time step."""


def lstm(name: str, x: Shape, units: int, line: int, *, loop: bool) -> Layer:
    """Return an LSTM and its gradient over (batch, steps, features): operations of cuDNN, or loops of small ones.

    The arithmetic is the same: two products for each time step, and twice as much backward.
    """
    batch, steps, features = x
    weights, gates = (features + units, 4 * units), (batch, 4 * units)
    flops = 2 * batch * (features + units) * 4 * units
    kind, result = Kind.MATMUL, (batch, units)
    if not loop:
        back = f"gradient_tape/{name}/CudnnRNNBackpropV3"
        forward = Op(f"{name}/CudnnRNNV3", "CudnnRNNV3", kind, (x, weights), result, steps * flops, line)
        return [forward], [Op(back, "CudnnRNNBackpropV3", kind, (x, weights), weights, 2 * steps * flops, line)]
    body = f"{name}/while/body/_1/{name}/while/lstm_cell"
    grad = f"gradient_tape/{name}/while/{name}/while_grad/body/_2/gradient_tape"

    def cell(scope: str, times: int) -> list[Op]:
        return [_of_cell(f"{scope}/{op}", op, gates, times * flops // 2, line) for op in CELL]

    return cell(body, 1) * steps, cell(grad, 2) * steps


def _of_cell(name: str, op: str, gates: Shape, flops: int, line: int) -> Op:
    kind = {"MatMul": "MatMul", "add": "AddV2", "split": "Split", "mul": "Mul"}.get(
        op.partition("_")[0], op.partition("_")[0]
    )
    if kind == "MatMul":
        inner = flops // (2 * gates[0] * gates[1])
        return Op(name, kind, Kind.MATMUL, ((gates[0], inner), (inner, gates[1])), gates, flops, line)
    return Op(name, kind, Kind.ELEMENTWISE, (gates,), gates, gates[0] * gates[1], line)
