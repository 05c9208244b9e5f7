"""Cheaper forms: what of the graph shows that one applies, and the graphs beside them that need the operation."""

from typing import Any

import pytest

from tests.builders import all_ran, graph_operation, program_of
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.hot_operation.cheaper_forms import CheaperForm, CheaperForms, FormKind

Row = dict[str, Any]


def tensor(*shape: int, kind: str = "float32") -> list[Any]:
    return [kind, list(shape)]


def op(name: str, kind: str, sources: list[int], given: list[Any], *made: Any, **more: Any) -> Row:
    return graph_operation(name, kind, given, list(made), **{"from": sources}, **more)


def found(*rows: Row) -> tuple[CheaperForm, ...]:
    """Measure a graph whose operations but the placeholders each take 1 ms."""
    program = program_of(*rows)
    ran = Operations(all_ran(program, 1.0, "Placeholder", "Const"))
    return Chart([program, ran]).fact(CheaperForms).forms


def kinds(*rows: Row) -> list[FormKind]:
    return [form.kind for form in found(*rows)]


def given(name: str, *shape: int) -> Row:
    return op(name, "Placeholder", [], [], tensor(*shape))


MATRIX, VALUES, EMPTY = tensor(96, 64), tensor(64), tensor(0)
W = given("w", 96, 64)
SVD = op("norm/Svd", "Svd", [0], [MATRIX], VALUES, EMPTY, EMPTY)


@pytest.mark.parametrize(
    ("use", "number"),
    [
        (op("largest", "StridedSlice", [1], [VALUES], tensor()), 1),
        (op("largest", "Max", [1], [VALUES], tensor()), 1),
        (op("nuclear", "Sum", [1], [VALUES], tensor()), 0),
        (op("ten", "StridedSlice", [1], [VALUES], tensor(10)), 0),
        (op("vectors", "MatMul", [1], [MATRIX], tensor(96, 96), ports=[1]), 0),
    ],
    ids=["slice", "maximum", "nuclear norm", "ten values", "vectors"],
)
def test_one_singular_value_needs_no_decomposition(use: Row, number: int) -> None:
    assert len(found(W, SVD, use)) == number


def test_the_gradient_of_a_decomposition_belongs_to_it() -> None:
    largest = op("norm/largest", "StridedSlice", [1], [VALUES], tensor())
    back = op("gradient_tape/norm/Svd", "Svd", [0], [MATRIX], VALUES, MATRIX, MATRIX)
    (form,) = found(W, SVD, largest, back)
    assert (form.kind, form.names) == (
        FormKind.LARGEST_SINGULAR_VALUE,
        frozenset(("norm/Svd", "gradient_tape/norm/Svd")),
    )


ROWS = tensor(8, 256)
SORT = op("TopKV2", "TopKV2", [0], [ROWS], ROWS, tensor(8, 256, kind="int32"))


@pytest.mark.parametrize(("few", "number"), [(64, 1), (65, 0)])
def test_a_quarter_of_a_sort_is_few(few: int, number: int) -> None:
    slices = op("few", "StridedSlice", [1], [ROWS], tensor(8, few))
    assert len(found(given("x", 8, 256), SORT, slices)) == number


def test_few_values_of_a_sort_in_the_other_direction() -> None:
    back = op("Neg", "Neg", [1], [ROWS], ROWS)
    (form,) = found(given("x", 8, 256), SORT, back, op("few", "Slice", [2], [ROWS], tensor(8, 12)))
    assert form.because == "12 of the 256 sorted values of each row are used"


@pytest.mark.parametrize("use", ["Sum", "GatherV2"])
def test_a_sort_of_which_all_is_used_is_needed(use: str) -> None:
    """Trap: the same sort also feeds a slice."""
    few = op("few", "StridedSlice", [1], [ROWS], tensor(8, 12))
    every = op("every", use, [1], [ROWS], tensor(8))
    assert not found(given("x", 8, 256), SORT, few, every)


def pairs(nodes: int, edges: int, *, repeated: int = 2) -> tuple[CheaperForm, ...]:
    """Multiply the concatenated rows of both ends of edges, of which so many are taken from the nodes."""
    row, both = tensor(edges, 32), tensor(edges, 64)
    ends = [
        op(f"end{n}", "GatherV2", [0, 1], [tensor(nodes, 32), tensor(edges)], row)
        if n < repeated
        else given(f"end{n}", edges, 32)
        for n in range(2)
    ]
    return found(
        given("nodes", nodes, 32),
        given("index", edges),
        *ends,
        op("axis", "Const", [], [], tensor()),
        op("concat", "ConcatV2", [2, 3, 4], [row, row, tensor()], both),
        given("w", 64, 16),
        op("MatMul", "MatMul", [5, 6], [both, tensor(64, 16)], tensor(edges, 16)),
    )


@pytest.mark.parametrize(("nodes", "number"), [(100, 1), (50, 1), (101, 0)])
def test_the_product_of_pairs_is_a_sum_of_products_of_single_rows(nodes: int, number: int) -> None:
    found_forms = pairs(nodes, 200)
    assert [form.kind for form in found_forms] == [FormKind.PAIRS_BEFORE_PRODUCT] * number
    assert all(form.left == nodes / 200 for form in found_forms)


def test_features_of_the_edges_themselves_are_no_repetition() -> None:
    """Trap: a message of the node and of the difference to its neighbour, which no node has."""
    assert not pairs(50, 200, repeated=1)


def resized(channels: int, kernel: int = 1, scale: int = 4, *, ways: int = 1) -> list[FormKind]:
    """Convolve an image of 32 channels that was enlarged."""
    small, large = tensor(4, 24, 24, 32), tensor(4, 24 * scale, 24 * scale, 32)
    weights, out = tensor(kernel, kernel, 32, channels), tensor(4, 24 * scale, 24 * scale, channels)
    return kinds(
        given("x", 4, 24, 24, 32),
        op("resize", "ResizeBilinear", [0], [small], large),
        given("k", *weights[1]),
        *(op(f"conv{n}", "Conv2D", [1, 2], [large, weights], out) for n in range(ways)),
    )


@pytest.mark.parametrize(("channels", "number"), [(4, 1), (16, 1), (17, 0), (64, 0)])
def test_a_convolution_of_single_pixels_may_come_before_the_resize(channels: int, number: int) -> None:
    """Trap: more channels, which are then dearer to enlarge."""
    assert resized(channels) == [FormKind.CONVOLUTION_AFTER_RESIZE] * number


def test_a_convolution_that_sees_neighbours_does_not_commute_with_a_resize() -> None:
    assert not resized(4, kernel=3)
    assert not resized(4, scale=1)
    assert not resized(4, ways=2)  # the enlarged image is needed for the other


SQUARE = tensor(64, 64)


@pytest.mark.parametrize(
    ("kind", "number"), [("MatrixDiagV3", 1), ("Diag", 1), ("MatrixBandPart", 0), ("MatrixDiagPart", 0)]
)
def test_a_product_with_a_diagonal_scales_rows(kind: str, number: int) -> None:
    rows = (
        given("d", 64),
        op("diag", kind, [0], [tensor(64)], SQUARE),
        given("x", 64, 64),
        op("MatMul", "MatMul", [1, 2], [SQUARE, SQUARE], SQUARE),
    )
    assert kinds(*rows) == [FormKind.PRODUCT_WITH_DIAGONAL] * number


@pytest.mark.parametrize(("wide", "number"), [(36, 1), (37, 0)])
def test_a_repeated_tensor_of_which_slices_are_used(wide: int, number: int) -> None:
    tiled = tensor(4, 144)
    rows = (
        given("x", 4, 48),
        op("Tile", "Tile", [0], [tensor(4, 48)], tiled),
        op("crop", "StridedSlice", [1], [tiled], tensor(4, wide)),
    )
    assert len(found(*rows)) == number


@pytest.mark.parametrize(("classes", "number"), [(10_000, 1), (9_999, 0)])
def test_a_loss_with_very_many_classes(classes: int, number: int) -> None:
    logits = tensor(128, classes)
    loss = op("loss", "SoftmaxCrossEntropyWithLogits", [0, 0], [logits, logits], tensor(128))
    assert len(found(given("x", 128, classes), loss)) == number


def test_local_response_normalization_can_be_left_out() -> None:
    image = tensor(4, 8, 8, 64)
    assert kinds(given("x", 4, 8, 8, 64), op("LRN", "LRN", [0], [image], image)) == [
        FormKind.RESPONSE_NORMALIZATION
    ]
