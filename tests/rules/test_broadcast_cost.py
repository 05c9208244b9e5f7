"""broadcast-cost: repetitions that broadcasting makes unnecessary, and tensors that it expands to be summed."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import Broadcast, Broadcasts
from tfdoctor.rules.operations import broadcast_cost
from tfdoctor.rules.operations.broadcast_cost import ExpandedProduct, ExpandedProducts

TILE = OperationTime(name="model/Tile", type="Tile", ms=4.0, at=Location("train.py", 22))


def example(
    repeated: tuple[Broadcast, ...] = (Broadcast(TILE, 128.0, (TILE,)),),
    expanded: tuple[ExpandedProduct, ...] = (),
    total_ms: float = 24.0,
) -> Verdict:
    """A row of weights is repeated 128 times by `tf.tile`."""
    rows = (*(one.row for one in repeated), *(one.row for one in expanded))
    operations = Operations.training(total_ms, *rows)
    products = ExpandedProducts(expanded) if expanded else None
    return broadcast_cost.check(Broadcasts(repeated), operations, None, None, products)


sick = example


def healthy() -> Verdict:
    """The step repeats no tensor."""
    return example(())


GPU, CPU = Hardware(DeviceKind.GPU, "x"), Hardware(DeviceKind.CPU, "x")
SMALL, FULL = ["float32", [8, 1, 64]], ["float32", [8, 128, 64]]


def use(name: str, kind: str, sources: Any, given: Any = FULL, made: Any = FULL) -> Any:
    return graph_operation(name, kind, [given] * len(sources), [made], **{"from": sources})


def check(
    given: Any = (8, 1, 64), ms: float = 20.0, user: str = "Mul", name: str = "tile", hardware: Hardware = GPU
) -> Verdict:
    program = program_of(use(name, "Tile", [None], ["float32", list(given)]), use("use", user, [0, None]))
    tile = OperationTime(name=name, type="Tile", ms=ms, operation=program.by_name[name])
    return Chart([program, Operations.training(100.0, tile), hardware]).call(broadcast_cost.check)


def test_what_reads_the_repetition_reads_the_small_tensor_instead() -> None:
    """Forward and backward: a third of the bytes of a product with two operands."""
    back = use("gradient_tape/use/Mul", "Mul", [1, 0])
    program = program_of(use("tile", "Tile", [None], SMALL), use("use", "Mul", [None, 0]), back)
    size = 8 * 128 * 64 * 4
    times = [
        OperationTime(
            name=operation.name, type=operation.type, ms=3.0, operation=operation,
            nbytes=size * (129 / 128 if operation.type == "Tile" else 3),
        )
        for operation in program.operations
    ]  # fmt: skip
    verdict = Chart([program, Operations(tuple(times)), GPU]).call(broadcast_cost.check)
    third = pytest.approx(2 / 3)
    assert scales(verdict) == {"tile": 0.0, "use": third, "gradient_tape/use/Mul": third}


def expanded(ms: float, times: float = 64.0, kind: str = "Sub") -> Verdict:
    """Judge a tensor that is expanded, in a step of 100 ms of compute."""
    row = OperationTime(name="sub", type=kind, ms=ms, at=Location("train.py", 9))
    return example((), (ExpandedProduct(row, (64, 64, 32), times, (row,)),), total_ms=100.0)


test_both_sides_of_each_limit = each_is(
    (check(ms=2.0), Finding),
    (check(ms=1.9), Healthy),
    (check(user="MatMul"), Healthy),  # operations that do not broadcast
    (check(user="ConcatV2"), Healthy),
    (check(user="Conv2D"), Healthy),
    (check((8, 2, 64)), Healthy),  # two rows repeated
    (check((2, 128, 1)), Healthy),  # only dimensions of size one broadcast
    (check((8, 128, 1)), Finding),
    (check(name="gradient_tape/mean/Tile"), Healthy),  # TensorFlow's own
    (check(hardware=CPU), Healthy, "20.0 ms"),  # a CPU broadcasts no faster than it repeats
    (expanded(2.0), Finding),
    (expanded(1.9), Healthy),
    (expanded(9.0, 15.9), Healthy),
    (expanded(9.0, 16.0), Finding),
)


@pytest.mark.parametrize(
    ("last", "hardware", "expected"),
    [
        ("Mul", GPU, {"gate": 1 / 128, "tile": 0.0}),
        ("MatMul", GPU, {"gate": 1 / 128}),
        ("Mul", CPU, {"gate": 1 / 128}),
    ],
)
def test_an_activation_belongs_before_the_repetition(
    last: str, hardware: Hardware, expected: dict[str, float]
) -> None:
    """A vector is repeated 128 times before its sigmoid, whose result another operation takes."""
    tile, gate = use("tile", "Tile", [None], SMALL), use("gate", "Sigmoid", [0])
    program = program_of(tile, gate, use("use", last, [1, None]))
    facts = [program, Operations(all_ran(program, 10.0)), hardware]
    assert scales(Chart(facts).call(broadcast_cost.check)) == expected


@pytest.mark.parametrize(("kind", "words"), [("Sub", "distances"), ("Mul", "einsum")])
def test_what_is_expanded_is_computed_by_a_matmul(kind: str, words: str) -> None:
    finding = as_finding(expanded(20.0, kind=kind))
    (remedy,) = finding.remedies
    assert words in remedy.action
    assert remedy.at == Location("train.py", 9)
    assert [(effect.subject, effect.bound) for effect in finding.effects] == [("sub", Bound.AT_MOST)]


def test_both_faults_are_one_finding_whose_time_is_a_ceiling() -> None:
    row = OperationTime(name="sub", type="Sub", ms=4.0)
    finding = as_finding(example(expanded=(ExpandedProduct(row, (64, 64, 32), 64.0, (row,)),)))
    assert {(effect.subject, effect.bound) for effect in finding.effects} == {
        (TILE.name, Bound.AT_MOST),
        ("sub", Bound.AT_MOST),
    }


# Tensors that are expanded and summed: what else may use them, and what belongs to them


LEFT, RIGHT, BIG, OUT = (["float32", shape] for shape in ([64, 1, 32], [1, 64, 32], [64, 64, 32], [64, 64]))
SCALAR = ["float32", []]


def graph(*more: dict[str, Any], first: str = "Sub", left: Any = LEFT) -> list[tuple[ExpandedProduct, set[str]]]:
    """Measure a graph of two operands (0, 1), the operation that expands them (2), and more; each takes 1 ms."""
    operands = use("a", "Placeholder", [], made=left), use("b", "Placeholder", [], made=RIGHT)
    expand = graph_operation("expand", first, [left, RIGHT], [BIG], **{"from": [0, 1]})
    program = program_of(*operands, expand, *more)
    found = Chart([program, Operations(all_ran(program, 1.0, "Placeholder"))]).fact(ExpandedProducts)
    return [(one, {row.name for row in one.rows}) for one in found.rows]


def big(name: str, kind: str, *sources: int, given: Any = BIG, made: Any = BIG) -> Any:
    return use(name, kind, list(sources), given, made)


def total(source: int) -> Any:
    return big("sum", "Sum", source, made=OUT)


def power(exponent: float | None) -> list[Any]:
    constant = graph_operation("two", "Const", [], [SCALAR], attrs={"scalar": exponent})
    raised = graph_operation("power", "Pow", [BIG, SCALAR], [BIG], **{"from": [2, 3]})
    return [constant, raised, total(4)]


def weighted(*shape: int) -> list[Any]:
    times = graph_operation("times", "Mul", [["float32", list(shape)], BIG], [BIG], **{"from": [3, 2]})
    return [use("w", "Placeholder", [], made=["float32", list(shape)]), times, total(4)]


SQUARE, SQUARED = big("square", "Square", 2), [big("square", "Square", 2), total(3)]


@pytest.mark.parametrize("square", [SQUARE, big("square", "Mul", 2, 2)], ids=["square", "itself"])
def test_squared_differences_that_are_summed_need_no_expansion(square: Any) -> None:
    ((found, names),) = graph(square, total(3))
    assert names == {"expand", "square", "sum"}
    assert (found.shape, found.times) == ((64, 64, 32), 32.0)
    assert found.remedy.action == "Compute squared distances with a matmul"


@pytest.mark.parametrize(
    ("rows", "more", "number"),
    [
        (power(2.0), {}, 1),
        (power(3.0), {}, 0),  # the distances of other norms are no matmul
        (power(None), {}, 0),  # recordings of earlier versions do not say
        ([total(2)], {"first": "Mul"}, 1),  # products are summed without a square
        ([total(2)], {"first": "SquaredDifference"}, 1),
        # Trap: city-block distances and additive attention are no matmul
        *(([big("other", kind, 2), total(3)], {}, 0) for kind in ("Abs", "Tanh", "MatMul")),
        *(([*SQUARED, big("beside", kind, 2)], {}, 0) for kind in ("Abs", "Tanh", "MatMul")),
        (SQUARED, {"left": BIG}, 0),  # trap: an operand as large as the result
        (weighted(64, 64, 1), {}, 1),  # residuals of cluster centers are two products
        (weighted(64, 64, 32), {}, 0),  # weights of the expanded size are no factor of a matmul
    ],
)
def test_only_what_a_matmul_computes_needs_no_expansion(rows: list[Any], more: dict[str, Any], number: int) -> None:
    found = graph(*rows, **more)
    assert len(found) == number
    assert all(one.weighted is (rows[0]["name"] == "w") for one, _ in found)


def test_gradients_of_the_expanded_size_belong_to_it() -> None:
    backward = (
        big("gradient_tape/Tile", "Tile", 4, given=OUT),
        big("gradient_tape/Mul", "Mul", 2, 5),
        big("gradient_tape/Sum", "Sum", 6, made=LEFT),
        big("gradient_tape/sqrt", "SqrtGrad", 4, given=OUT, made=OUT),
    )
    ((_, names),) = graph(*SQUARED, *backward)
    assert names == {"expand", "square", "sum", "gradient_tape/Tile", "gradient_tape/Mul", "gradient_tape/Sum"}


def test_gradients_of_products_that_take_only_their_operands_belong_to_it() -> None:
    """The gradient of a sum takes the shape of the product, and that of a product its operands."""
    backward = (
        big("gradient_tape/Tile", "Tile", 3, given=OUT),
        graph_operation("gradient_tape/expand/Mul", "Mul", [BIG, RIGHT], [BIG], **{"from": [4, 1]}),
        big("gradient_tape/expand/Sum", "Sum", 5, made=LEFT),
        big("gradient_tape/expand/Reshape", "Reshape", 6, given=LEFT, made=["float32", [64, 32]]),
        big("gradient_tape/expanded/Mul", "Mul", 0, 0, given=LEFT),
    )
    ((_, names),) = graph(total(2), *backward, first="Mul")
    expand = "gradient_tape/expand"
    assert names == {"expand", "sum", "gradient_tape/Tile", f"{expand}/Mul", f"{expand}/Sum"}


def test_trap_the_gradient_of_an_outer_product_is_not_judged() -> None:
    backward = graph_operation("gradient_tape/outer", "Mul", [LEFT, RIGHT], [BIG], **{"from": [0, 1]})
    assert not graph(backward, total(3), big("other", "Tanh", 2))
