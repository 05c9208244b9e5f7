"""late-gather: both sides of its limits, and where its saving is a ceiling."""

from tests.rules.kit import *
from tfdoctor.rules.operations.late_gather import Limits, SelectedProduct, SelectedProducts, check

EXAMPLE_LOGITS = took("model/logits/MatMul", "MatMul", 34.0, at=script(31))
GRADIENT = took("gradient_tape/model/logits/MatMul/MatMul_1", "MatMul", 30.0)


def example(kept: float = 10 / 64, *, total: float = 240.0, kind: DeviceKind = DeviceKind.CPU) -> Verdict:
    """The logits of 64 positions are computed, and those of 10 are gathered."""
    to = (None, round(64 * kept), 16000)
    one = SelectedProduct(EXAMPLE_LOGITS, (EXAMPLE_LOGITS, GRADIENT), kept, (None, 64, 16000), to, script(35))
    device = Device(kind, visible=1, used=1)
    return check(SelectedProducts((one,)), training_step(total, *one.rows), device)


sick = example
healthy = described("Most positions are used.", example, 60 / 64)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half of the positions, and more"] = example(0.5), example(0.52)
    whole = 64.0 * (54 / 64) / Limits().share
    told["the share of the compute, and less"] = example(total=0.99 * whole), example(total=1.01 * whole)
    told["on a GPU the saving was not measured"] = example(kind=DeviceKind.GPU)
    cpu = Device(DeviceKind.CPU, visible=1, used=1)
    told["unnamed work is not called healthy"] = applied(check, SelectedProducts(()), UNNAMED_WORK, cpu)


# Selections of rows: what of the graph is computed for them alone, and what others use as well.
Sizes = list[int | None]
HIDDEN: Sizes = [None, 64, 192]
LOGITS: Sizes = [None, 64, 16000]
TAKEN: Sizes = [None, 10, 16000]
LAST: Sizes = [None, 16000]


def op(name: str, kind: str, sources: list[int], shape: Sizes, *of: Sizes, **more: Any) -> Op:
    """An operation on float32; ``of`` are the shapes of its inputs, ``sources`` where they are made."""
    given = [["float32", one] for one in of]
    return graph_operation(name, kind, given, [["float32", shape]], **{"from": sources}, **more)


def found(*rows: Op) -> tuple[SelectedProduct, ...]:
    """Measure a graph whose operations but the inputs each take 1 ms."""
    program = program_of(*rows)
    ran = Operations(all_ran(program, 1.0, "Placeholder", "ReadVariableOp"))
    return Chart([program, ran]).fact(SelectedProducts).rows


def selected(*rows: Op) -> list[str]:
    return [
        f"{one.kept:.4g} of {', '.join(row.name for row in one.rows)}" for one in found(*rows) if one.kept < 1.0
    ]


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


@golden_cases
def test_selections(told: Cases) -> None:
    told["the product before a gather is found with all between"] = selected(*DENSE, GATHER)
    told["the last row, by a strided slice"] = selected(*DENSE, op("last", "StridedSlice", [7], LAST, LOGITS))
    told["16 rows, by a slice"] = selected(*DENSE, op("some", "Slice", [7], [None, 16, 16000], LOGITS))
    for name, selection in (
        ("classes", op("classes", "GatherV2", [7, 2], [None, 64, 10], LOGITS, [10])),
        ("an open number of rows", op("open", "GatherV2", [7, 2], [None, None, 16000], LOGITS, [None, None])),
        ("pairs", op("pairs", "GatherNd", [7, 2], LAST, LOGITS, [None, 2])),
        ("whole batches", op("batch", "StridedSlice", [7], LOGITS, LOGITS)),
    ):
        told[f"a selection of {name}"] = selected(*DENSE, selection)
    mask = op("Where", "Where", [0], [None, 1]), op("Squeeze", "Squeeze", [8], [None], [None, 1])
    told["a selection by a mask"] = selected(*DENSE, *mask, op("mask", "GatherV2", [7, 9], LAST, LOGITS, [None]))
    for name, used in (("the product is used for all rows", 5), ("trap: logits that the step returns", 7)):
        told[name] = selected(*DENSE, GATHER, op("out", "Identity", [used], LOGITS, LOGITS))
    back = [
        op("gradient_tape/head/Tensordot/MatMul/MatMul", "MatMul", [7, 1], [None, 192], LAST, [192, 16000]),
        op("gradient_tape/head/Tensordot/MatMul/MatMul_1", "MatMul", [4, 7], [192, 16000], [None, 192], LAST),
        op("gradient_tape/other/MatMul", "MatMul", [0, 1], LAST, HIDDEN, [192, 16000]),
    ]  # fmt: skip
    told["gradients belong to their operations and are no other use"] = selected(*DENSE, GATHER, *back)
    for equation in ("bsd,vd->bsv", "vd,bsd->bsv", ""):
        einsum = op("Einsum", "Einsum", [0, 1], LOGITS, HIDDEN, [16000, 192], attrs={"equation": equation})
        gather = op("GatherV2", "GatherV2", [3, 2], TAKEN, LOGITS, [None, 10])
        told[f"an einsum's rows are of its first operand: {equation!r}"] = selected(X, W, INDEX, einsum, gather)
    nodes: tuple[Sizes, ...] = [2400, 2400], [2400, 1400], [2400, 96], [2400, 7]
    told["a graph network: the product with the neighbours needs all rows of the layer before"] = selected(
        op("near", "Placeholder", [], nodes[0]), op("x", "Placeholder", [], nodes[1]),
        op("w0", "ReadVariableOp", [], [1400, 96]), op("w1", "ReadVariableOp", [], [96, 7]), INDEX,
        op("first", "MatMul", [1, 2], nodes[2], nodes[1], [1400, 96]),
        op("mixed", "MatMul", [0, 5], nodes[2], nodes[0], nodes[2]),
        op("second", "MatMul", [6, 3], nodes[3], nodes[2], [96, 7]),
        op("skip", "MatMul", [5, 3], nodes[3], nodes[2], [96, 7]),
        op("sum", "AddV2", [7, 8], nodes[3], nodes[3], nodes[3]),
        op("GatherV2", "GatherV2", [9, 4], [258, 7], nodes[3], [258]),
    )  # fmt: skip
    mean = op("norm/Mean", "Mean", [7], [None, 64, 1], LOGITS)
    less = op("norm/sub", "Sub", [7, 8], LOGITS, LOGITS, [None, 64, 1])
    told["a normalization between, whose operations are not known to be of rows alone"] = selected(
        *DENSE, mean, less, op("last", "StridedSlice", [9], LAST, LOGITS)
    )
