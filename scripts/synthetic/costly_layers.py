"""Layers and updates that cost more than they need to, and what is written in their place."""

from math import prod

from scripts.synthetic.operation import Kind, Layer, Op, Shape

GELU = (("mul", "Mul", 1), ("truediv", "RealDiv", 1), ("Erf", "Erf", 1), ("add", "AddV2", 1),
        ("mul_1", "Mul", 2))  # fmt: skip
GELU_GRADIENT = (
    ("mul_1/Mul", "Mul", 2), ("mul_1/Mul_1", "Mul", 2), ("Square", "Square", 1), ("Neg", "Neg", 1),
    ("Exp", "Exp", 1), ("Mul", "Mul", 1), ("Mul_1", "Mul", 2), ("truediv/RealDiv", "RealDiv", 1),
    ("mul/Mul", "Mul", 1), ("AddN", "AddN", 2),
)  # fmt: skip
"""Path, type and full-size operands of what `tf.nn.gelu` is: x / 2 * (1 + erf(x / sqrt(2)))."""

ADAM = ("Sub", "Mul", "AssignAddVariableOp", "Square", "Sub", "Mul", "AssignAddVariableOp", "Mul",
        "Sqrt", "AddV2", "RealDiv", "AssignSubVariableOp")  # fmt: skip
"""What Keras 3's Adam runs for each variable."""

SMALL = 64
"""Values of a small variable, such as a bias."""


def gelu(name: str, x: Shape, line: int) -> Layer:
    """Return an activation as a chain of single operations."""

    def op(prefix: str, path: str, kind: str, operands: int) -> Op:
        whole = f"{prefix}{name}/Gelu/{path}"
        return Op(whole, kind, Kind.ELEMENTWISE, (x,) * operands, x, prod(x), line)

    return [op("", *part) for part in GELU], [op("gradient_tape/", *part) for part in GELU_GRADIENT]


def compiled(name: str, x: Shape, line: int) -> Layer:
    """Return the same in one kernel for each direction: x is read, and the gradient with it."""
    kind, launch = Kind.FUSED, "XlaLaunch"
    return [Op(f"{name}/{launch}", launch, kind, (x,), x, prod(x), line)], [
        Op(f"gradient_tape/{name}/{launch}", launch, kind, (x, x), x, prod(x), line)
    ]


def pooling(name: str, x: Shape, line: int, kind: str) -> Layer:
    """Return a pooling over 2 x 2: the maximum's gradient reads both sides of it again."""
    y = (x[0], x[1] // 2, x[2] // 2, x[3])
    forward, operands = ("MaxPool", (x, y, y)) if kind == "max" else ("AvgPool", (y,))
    back = f"{forward}Grad"
    whole = f"gradient_tape/{name}/{forward}2d/{back}"
    return [Op(f"{name}/{forward}2d", forward, Kind.POOLING, (x,), y, prod(x), line)], [
        Op(whole, back, Kind.POOLING, operands, x, prod(x), line)
    ]


def scale(name: str, x: Shape, line: int, *, tiled: bool) -> Layer:
    """Return the product with a factor for each channel and example, which may be tiled first."""
    factor, kind, flops = (x[0], 1, 1, x[3]), Kind.ELEMENTWISE, prod(x)
    by = x if tiled else factor
    tape, of = f"gradient_tape/{name}", "Tile" if tiled else "mul"
    tile = Op(f"{name}/Tile", "Tile", kind, (factor,), x, flops, line)
    made = tile.name if tiled else ""
    product = Op(f"{name}/mul", "Mul", kind, (x, by), x, flops, line, made)
    return [tile, product] if tiled else [product], [
        Op(f"{tape}/mul/Mul", "Mul", kind, (x, by), x, flops, line, made),
        Op(f"{tape}/mul/Mul_1", "Mul", kind, (x, x), x, flops, line),
        Op(f"{tape}/{of}/Sum", "Sum", kind, (x,), factor, flops, line),
    ]


def first_to_last(name: str, x: Shape, line: int) -> Layer:
    """Return the transposition to channels last, of which ``x`` is the shape; images have no gradient."""
    return _turn(name, (x[0], x[3], x[1], x[2]), x, line, trained=name != "permute")


def last_to_first(name: str, x: Shape, line: int) -> Layer:
    """Return the transposition from channels last, of which ``x`` is the shape."""
    return _turn(name, x, (x[0], x[3], x[1], x[2]), line, trained=True)


def _turn(name: str, x: Shape, y: Shape, line: int, *, trained: bool) -> Layer:
    kind, whole = Kind.LAYOUT, f"{name}/transpose"
    back = Op(f"gradient_tape/{whole}/transpose", "Transpose", kind, (y,), x, 0, line)
    return [Op(whole, "Transpose", kind, (x,), y, 0, line)], [back] if trained else []


def small_updates(variables: int, line: int) -> list[Op]:
    """Return what Adam does to so many small variables."""
    shape = (SMALL,)
    return [
        Op(f"adam/{kind}_{variable}_{at}", kind, Kind.ELEMENTWISE, (shape,), shape, SMALL, line)
        for variable in range(variables)
        for at, kind in enumerate(ADAM)
    ]
