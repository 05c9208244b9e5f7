"""late-gather: both sides of its limits, and where its saving is a ceiling."""

from tests.rules.kit import *
from tfdoctor.rules.operations import late_gather
from tfdoctor.rules.operations.late_gather import Limits, SelectedProduct, SelectedProducts, check

EXAMPLE_LOGITS = OperationTime(name="model/logits/MatMul", type="MatMul", ms=34.0, at=Location("train.py", 31))


GRADIENT = OperationTime(name="gradient_tape/model/logits/MatMul/MatMul_1", type="MatMul", ms=30.0)


def example(kept: float = 10 / 64, *, total: float = 240.0, kind: DeviceKind = DeviceKind.CPU) -> Verdict:
    """The logits of 64 positions are computed, and those of 10 are gathered."""
    to = (None, round(64 * kept), 16000)
    one = SelectedProduct(
        EXAMPLE_LOGITS, (EXAMPLE_LOGITS, GRADIENT), kept, (None, 64, 16000), to, Location("train.py", 35)
    )
    device = Device(kind, visible=1, used=1)
    return check(SelectedProducts((one,)), Operations.training(total, *one.rows), device)


sick = example


def healthy() -> Verdict:
    """Most positions are used."""
    return example(60 / 64)


CPU = Device(DeviceKind.CPU, visible=1, used=1)


def test_the_product_and_its_gradient_shrink_to_the_selected_rows() -> None:
    finding = as_finding(example())
    assert [(one.scales, bool(one.narrows)) for one in finding.effects] == [(near(10 / 64), True)] * 2


def test_both_sides_of_each_limit() -> None:
    assert kinds(example(0.5), example(0.52)) == [Finding, Healthy]
    whole = 64.0 * (54 / 64) / Limits().share
    assert kinds(example(total=0.99 * whole), example(total=1.01 * whole)) == [Finding, Healthy]


def test_the_saving_is_a_ceiling_where_it_was_not_measured() -> None:
    for kind, bound in ((DeviceKind.CPU, Bound.EXPECTED), (DeviceKind.GPU, Bound.AT_MOST)):
        assert {one[3] for one in effects(example(kind=kind))} == {bound}


def test_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    verdict = applied(late_gather, SelectedProducts(()), Operations((unnamed,)), CPU)
    assert isinstance(verdict, NotApplicable)


# Selections of rows: what of the graph is computed for them alone, and what others use as well.


Row = dict[str, Any]
Sizes = list[int | None]

HIDDEN: Sizes = [None, 64, 192]
LOGITS: Sizes = [None, 64, 16000]
TAKEN: Sizes = [None, 10, 16000]
LAST: Sizes = [None, 16000]


def op(name: str, kind: str, sources: list[int], shape: Sizes, *of: Sizes, **more: Any) -> Row:
    """An operation on float32; ``of`` are the shapes of its inputs, ``sources`` where they are made."""
    given = [["float32", one] for one in of]
    return graph_operation(name, kind, given, [["float32", shape]], **{"from": sources}, **more)


X = op("x", "Placeholder", [], HIDDEN)
W = op("w", "ReadVariableOp", [], [192, 16000])
INDEX = op("index", "Placeholder", [], [None, 10])
BIAS = op("b", "ReadVariableOp", [], [16000])
FLAT = op("head/Tensordot/Reshape", "Reshape", [0], [None, None], HIDDEN)
PRODUCT = op("head/Tensordot/MatMul", "MatMul", [4, 1], LAST, [None, None], [192, 16000])
FULL = op("head/Tensordot", "Reshape", [5], LOGITS, LAST)
ADD = op("head/BiasAdd", "BiasAdd", [6, 3], LOGITS, LOGITS, [16000])
DENSE = (X, W, INDEX, BIAS, FLAT, PRODUCT, FULL, ADD)
"""A Dense layer of Keras on a batch of sequences; its result is operation 7, what follows is from 8 on."""

GATHER = op("GatherV2", "GatherV2", [7, 2], TAKEN, LOGITS, [None, 10])


def found(*rows: Row) -> tuple[SelectedProduct, ...]:
    """Measure a graph whose operations but the inputs each take 1 ms."""
    program = program_of(*rows)
    ran = Operations(all_ran(program, 1.0, "Placeholder", "ReadVariableOp"))
    return Chart([program, ran]).fact(SelectedProducts).products


def test_the_product_before_a_gather_is_found_with_all_between() -> None:
    (one,) = found(*DENSE, GATHER)
    assert one.kept == near(10 / 64)
    assert {row.name for row in one.rows} == {row["name"] for row in DENSE[4:]}


def test_a_slice_of_rows_counts_as_a_gather() -> None:
    last, some = op("last", "StridedSlice", [7], LAST, LOGITS), op("some", "Slice", [7], [None, 16, 16000], LOGITS)
    assert [found(*DENSE, selection)[0].kept for selection in (last, some)] == near([1 / 64, 1 / 4])


def test_a_selection_of_other_things_is_no_finding() -> None:
    for selection in (
        op("classes", "GatherV2", [7, 2], [None, 64, 10], LOGITS, [10]),
        op("open", "GatherV2", [7, 2], [None, None, 16000], LOGITS, [None, None]),
        op("pairs", "GatherNd", [7, 2], LAST, LOGITS, [None, 2]),
        op("batch", "StridedSlice", [7], LOGITS, LOGITS),
    ):
        assert not [one for one in found(*DENSE, selection) if one.kept < 1.0]


def test_a_selection_by_a_mask_is_of_unknown_size() -> None:
    mask = op("Where", "Where", [0], [None, 1])
    rows = op("Squeeze", "Squeeze", [8], [None], [None, 1])
    assert not found(*DENSE, mask, rows, op("mask", "GatherV2", [7, 9], LAST, LOGITS, [None]))


def test_a_result_that_is_used_for_all_rows_is_no_finding() -> None:
    """Trap: an auxiliary loss on all positions, or logits that the step returns."""
    for used in (5, 7):
        assert not found(*DENSE, GATHER, op("out", "Identity", [used], LOGITS, LOGITS))


def test_gradients_belong_to_their_operations_and_are_no_other_use() -> None:
    back = [
        op("gradient_tape/head/Tensordot/MatMul/MatMul", "MatMul", [7, 1], [None, 192], LAST, [192, 16000]),
        op("gradient_tape/head/Tensordot/MatMul/MatMul_1", "MatMul", [4, 7], [192, 16000], [None, 192], LAST),
        op("gradient_tape/other/MatMul", "MatMul", [0, 1], LAST, HIDDEN, [192, 16000]),
    ]  # fmt: skip
    (one,) = found(*DENSE, GATHER, *back)
    names = {row.name for row in one.rows}
    assert {row["name"] for row in back[:2]} <= names
    assert back[2]["name"] not in names


def test_an_einsum_counts_where_the_rows_are_of_its_first_operand() -> None:
    for equation, number in (("bsd,vd->bsv", 1), ("vd,bsd->bsv", 0), ("", 0)):
        einsum = op("Einsum", "Einsum", [0, 1], LOGITS, HIDDEN, [16000, 192], attrs={"equation": equation})
        gather = op("GatherV2", "GatherV2", [3, 2], TAKEN, LOGITS, [None, 10])
        assert len(found(X, W, INDEX, einsum, gather)) == number, equation


def test_a_normalization_between_ends_the_search() -> None:
    """Its mean is over the row, but its operations are not known to be of rows alone."""
    mean = op("norm/Mean", "Mean", [7], [None, 64, 1], LOGITS)
    less = op("norm/sub", "Sub", [7, 8], LOGITS, LOGITS, [None, 64, 1])
    assert not found(*DENSE, mean, less, op("last", "StridedSlice", [9], LAST, LOGITS))


def test_reading_the_matrix_takes_its_time_however_few_rows_there_are() -> None:
    (one,) = found(*DENSE, op("last", "StridedSlice", [7], LAST, LOGITS))
    row = one.product
    nbytes = 192 * 16000 * 4
    assert dict(one.matrices)[row.name] == nbytes
    assert one.left(row, None) == one.kept
    assert one.left(row, nbytes * 2e3) == near(0.5)
    assert one.left(row, nbytes * 1.0) == 1.0
