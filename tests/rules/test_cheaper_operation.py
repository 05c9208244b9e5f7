"""cheaper-operation: what its form spares, and what of the graph shows that the form applies."""

from tests.rules.kit import *
from tfdoctor.rules.operations.cheaper_operation import check
from tfdoctor.rules.operations.cheaper_operation.cheaper_forms import CheaperForm, CheaperForms, FormKind

AT = script(31)
LOSS = "SparseSoftmaxCrossEntropyWithLogits"


def form(kind: FormKind, *names: str, left: float = 0.0) -> CheaperForms:
    return CheaperForms((CheaperForm(kind, AT, frozenset(names), "of 96 values one is used", left),))


def judged(kind: str, time_ms: float, of: FormKind, left: float = 0.0) -> Verdict:
    """Judge an operation that has a cheaper form, in steps of 40 ms."""
    (row,) = all_ran(program_of(op(kind, kind, [], [], tensor(96))), time_ms)
    return check(form(of, kind, left=left), training_step(40.0, row))


def example() -> Verdict:
    """All singular values of some weights take 20 of 40 ms, and the largest is used."""
    return judged("Svd", 20.0, FormKind.LARGEST_SINGULAR_VALUE)


sick = example
healthy = described("The decomposition takes 1 of 40 ms.", judged, "Svd", 1.0, FormKind.LARGEST_SINGULAR_VALUE)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for time_ms in (2.0, 1.99):
        told[f"{time_ms} of 40 ms are a twentieth, or less"] = judged("TopKV2", time_ms, FormKind.FEW_OF_A_SORT)
    told["half of the arithmetic is left"] = judged("Conv2D", 20.0, FormKind.CONVOLUTION_AFTER_RESIZE, 0.5)
    for time_ms in (20.0, 19.9):
        told[f"a loss takes {time_ms} of 40 ms: sampling trains another objective"] = judged(
            LOSS, time_ms, FormKind.LARGE_SOFTMAX
        )
    told["no form is known"] = applied(check, CheaperForms(), training_step(40.0, took("Svd", "Svd", 9.0)))
    told["unnamed work is not called healthy"] = applied(check, CheaperForms(), UNNAMED_WORK)


# Cheaper forms: what of the graph shows that one applies, and the graphs beside them that need the operation


def tensor(*shape: int, kind: str = "float32") -> list[Any]:
    return [kind, list(shape)]


def op(name: str, kind: str, sources: list[int], given: list[Any], *made: Any, **more: Any) -> Op:
    return graph_operation(name, kind, given, list(made), **{"from": sources}, **more)


def forms(*rows: Op) -> tuple[CheaperForm, ...]:
    """Measure a graph whose operations but the placeholders each take 1 ms."""
    program = program_of(*rows)
    ran = Operations(all_ran(program, 1.0, "Placeholder", "Const"))
    return Chart([program, ran]).fact(CheaperForms).forms


def fed(name: str, *shape: int) -> Op:
    return op(name, "Placeholder", [], [], tensor(*shape))


def pairs(nodes: int, *, repeated: int = 2) -> tuple[Op, ...]:
    """Multiply the concatenated rows of both ends of 200 edges, of which so many are taken from the nodes."""
    row, both = tensor(200, 32), tensor(200, 64)
    taken = [op(f"end{n}", "GatherV2", [0, 1], [tensor(nodes, 32), tensor(200)], row) for n in range(repeated)]
    return (
        fed("nodes", nodes, 32),
        fed("index", 200),
        *(*taken, *(fed(f"end{n}", 200, 32) for n in range(repeated, 2))),
        op("axis", "Const", [], [], tensor()),
        op("concat", "ConcatV2", [2, 3, 4], [row, row, tensor()], both),
        fed("w", 64, 16),
        op("MatMul", "MatMul", [5, 6], [both, tensor(64, 16)], tensor(200, 16)),
    )


def resized(channels: int, kernel: int = 1, scale: int = 4, *, ways: int = 1) -> tuple[Op, ...]:
    """Convolve an image of 32 channels that was enlarged."""
    small, large = tensor(4, 24, 24, 32), tensor(4, 24 * scale, 24 * scale, 32)
    weights, out = tensor(kernel, kernel, 32, channels), tensor(4, 24 * scale, 24 * scale, channels)
    return (
        fed("x", 4, 24, 24, 32),
        op("resize", "ResizeBilinear", [0], [small], large),
        fed("k", *weights[1]),
        *(op(f"conv{n}", "Conv2D", [1, 2], [large, weights], out) for n in range(ways)),
    )


def diagonal(kind: str) -> tuple[Op, ...]:
    made, product = op("diag", kind, [0], [VALUES], SQUARE), op("m", "MatMul", [1, 2], [SQUARE, SQUARE], SQUARE)
    return fed("d", 64), made, fed("x", 64, 64), product


def jacobian(scope: str, kind: str = "MatrixDiagPartV3") -> tuple[Op, ...]:
    made = op(f"{scope}/MatMul", "MatMul", [0, 0], [SQUARE, SQUARE], SQUARE)
    shaped = op("squeeze", "Squeeze", [1], [SQUARE], SQUARE)
    return fed("x", 64, 64), made, shaped, op("diag_part", kind, [2], [SQUARE], VALUES)


def products(*shapes: tuple[int, int], last: bool = False) -> tuple[Op, ...]:
    """Multiply three matrices, the first two or the last two first."""
    a, b, c = (tensor(*shape) for shape in shapes)
    first, second = (b, c) if last else (a, b)
    inner = tensor(first[1][0], second[1][1])
    made = op("inner", "MatMul", [1, 2] if last else [0, 1], [first, second], inner)
    outer = ([0, 3], [a, inner]) if last else ([3, 2], [inner, c])
    whole = op("outer", "MatMul", *outer, tensor(a[1][0], c[1][1]))
    return (*(fed(name, *shape) for name, shape in zip("abc", shapes, strict=True)), made, whole)


def loss_of(classes: int) -> tuple[Op, ...]:
    logits = tensor(128, classes)
    return fed("x", 128, classes), op("l", LOSS.removeprefix("Sparse"), [0, 0], [logits, logits], tensor(128))


MATRIX, VALUES, EMPTY, SQUARE = tensor(96, 64), tensor(64), tensor(0), tensor(64, 64)
SVD = (fed("w", 96, 64), op("norm/Svd", "Svd", [0], [MATRIX], VALUES, EMPTY, EMPTY))
ROWS, TILED, IMAGE = tensor(8, 256), tensor(4, 144), tensor(4, 8, 8, 64)
SORT = (fed("x", 8, 256), op("TopKV2", "TopKV2", [0], [ROWS], ROWS, tensor(8, 256, kind="int32")))
FEW = op("few", "StridedSlice", [1], [ROWS], tensor(8, 12))
TILE = (fed("x", 4, 48), op("Tile", "Tile", [0], [tensor(4, 48)], TILED))


@golden_cases
def test_measured_forms(told: Cases) -> None:  # noqa: PLR0915 - the cases of a table
    def svd(*used: Any, **more: Any) -> tuple[CheaperForm, ...]:
        return forms(*SVD, op("used", *used, **more))

    def sort(kind: str, *shape: int, beside: tuple[Op, ...] = ()) -> tuple[CheaperForm, ...]:
        return forms(*SORT, *beside, op("used", kind, [1], [ROWS], tensor(*shape)))

    told["one singular value is used"] = [svd(kind, [1], [VALUES], tensor()) for kind in ("StridedSlice", "Max")]
    told["the nuclear norm, ten singular values, and vectors are used"] = svd("Sum", [1], [VALUES], tensor())
    told[...] = svd("StridedSlice", [1], [VALUES], tensor(10))
    told[...] = svd("MatMul", [1], [MATRIX], tensor(96, 96), ports=[1])
    told["a quarter of a sort is used"] = sort("StridedSlice", 8, 64)
    told["more of a sort is used"] = sort("StridedSlice", 8, 65)
    told["a slice and all of a sort are used"] = [sort(kind, 8, beside=(FEW,)) for kind in ("Sum", "GatherV2")]
    told["the nodes of pairs are half as many, or fewer"] = forms(*pairs(100)), forms(*pairs(50))
    told["the nodes of pairs are more"] = forms(*pairs(101))
    told["the difference to a neighbour, which no node has"] = forms(*pairs(50, repeated=1))
    told["a convolution of an enlarged image, of half as many channels"] = forms(*resized(4)), forms(*resized(16))
    told["more channels, which are then dearer to enlarge"] = forms(*resized(17))
    told["a convolution sees neighbours"] = forms(*resized(4, kernel=3))
    told["an image of the same size"] = forms(*resized(4, scale=1))
    told["the enlarged image is needed for another convolution"] = forms(*resized(4, ways=2))
    told["a product with a diagonal"] = forms(*diagonal("MatrixDiagV3")), forms(*diagonal("Diag"))
    told["a product with a band, and a part of a diagonal"] = forms(*diagonal("MatrixBandPart"))
    told[...] = forms(*diagonal("MatrixDiagPart"))
    told["the diagonal of a Jacobian"] = forms(*jacobian("gradient_tape/dense/MatMul/pfor"))
    told["of a Jacobian, its gradient, and another loop, that of another line"] = forms(
        *jacobian("gradient_tape/dense/MatMul/pfor"),
        op(
            "gradient_tape/gradient_tape/dense/MatMul/pfor/Mul",
            "Mul",
            [0, 0],
            [SQUARE, SQUARE],
            SQUARE,
            at=["t.py", 9],
        ),
        op("map/pfor/MatMul", "MatMul", [0, 0], [SQUARE, SQUARE], SQUARE, at=["t.py", 60]),
    )
    told["the diagonal of a product, and a Jacobian's sum"] = forms(*jacobian("dense"))
    told[...] = forms(*jacobian("gradient_tape/dense/MatMul/pfor", "Sum"))
    told["a product with weights that could come first"] = forms(*products((2400, 2400), (2400, 1400), (1400, 96)))
    told["the last two first"] = forms(*products((96, 1400), (1400, 2400), (2400, 2400), last=True))
    told["either order needs about the same"] = forms(*products((2400, 96), (96, 96), (96, 96)))
    told["the inner product is used elsewhere"] = forms(
        *products((2400, 2400), (2400, 1400), (1400, 96)), op("sum", "Sum", [3], [tensor(2400, 1400)], tensor())
    )
    told["a quarter of the copies is used"] = forms(*TILE, op("crop", "StridedSlice", [1], [TILED], tensor(4, 36)))
    told["more of the copies is used"] = forms(*TILE, op("crop", "StridedSlice", [1], [TILED], tensor(4, 37)))
    told["10,000 classes"] = forms(*loss_of(10_000))
    told["fewer classes"] = forms(*loss_of(9_999))
    told["response normalization"] = forms(fed("x", 4, 8, 8, 64), op("LRN", "LRN", [0], [IMAGE], IMAGE))
    largest = op("norm/largest", "StridedSlice", [1], [VALUES], tensor())
    back = op("gradient_tape/norm/Svd", "Svd", [0], [MATRIX], VALUES, MATRIX, MATRIX)
    told["the gradient of a decomposition belongs to it"] = forms(*SVD, largest, back)
    negated, few = op("Neg", "Neg", [1], [ROWS], ROWS), op("few", "Slice", [2], [ROWS], tensor(8, 12))
    told["few values of a sort in the other direction"] = forms(*SORT, negated, few)
