"""Tensors that broadcasting expands and that are summed: what else may use them, and what belongs to them."""

from typing import Any

import pytest

from tests.builders import all_ran, graph_operation, program_of
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.broadcast_cost import ExpandedProducts

LEFT, RIGHT, BIG, OUT = (["float32", shape] for shape in ([64, 1, 32], [1, 64, 32], [64, 64, 32], [64, 64]))
SCALAR = ["float32", []]


def graph(*more: dict[str, Any], first: str = "Sub", left: Any = LEFT) -> ExpandedProducts:
    """Measure a graph of two operands (0, 1), the operation that expands them (2), and more; each takes 1 ms."""
    rows = [
        graph_operation("a", "Placeholder", [], [left]),
        graph_operation("b", "Placeholder", [], [RIGHT]),
        graph_operation("expand", first, [left, RIGHT], [BIG], **{"from": [0, 1]}),
        *more,
    ]
    program = program_of(*rows)
    return Chart([program, Operations(all_ran(program, 1.0, "Placeholder"))]).fact(ExpandedProducts)


def use(name: str, kind: str, sources: list[int], given: Any = BIG, made: Any = BIG) -> Any:
    return graph_operation(name, kind, [given] * len(sources), [made], **{"from": sources})


SUM = use("sum", "Sum", [3], BIG, OUT)


@pytest.mark.parametrize(("kind", "sources"), [("Square", [2]), ("Mul", [2, 2])], ids=["square", "itself"])
def test_squared_differences_that_are_summed_need_no_expansion(kind: str, sources: list[int]) -> None:
    (found,) = graph(use("square", kind, sources), SUM).rows
    assert {row.name for row in found.rows} == {"expand", "square", "sum"}
    assert (found.shape, found.times) == ((64, 64, 32), 32.0)
    assert found.remedy.action == "Compute squared distances with a matmul"


@pytest.mark.parametrize(("exponent", "number"), [(2.0, 1), (3.0, 0), (None, 0)])
def test_only_an_exponent_of_two_is_a_square(exponent: float | None, number: int) -> None:
    """The distances of other norms are no matmul; recordings of earlier versions do not say."""
    constant = graph_operation("two", "Const", [], [SCALAR], attrs={"scalar": exponent})
    power = graph_operation("power", "Pow", [BIG, SCALAR], [BIG], **{"from": [2, 3]})
    found = graph(constant, power, use("sum", "Sum", [4], BIG, OUT)).rows
    assert len(found) == number


@pytest.mark.parametrize("kind", ["Mul", "SquaredDifference"])
def test_products_are_summed_without_a_square(kind: str) -> None:
    assert graph(use("sum", "Sum", [2], BIG, OUT), first=kind).rows


@pytest.mark.parametrize("kind", ["Abs", "Tanh", "MatMul"])
def test_trap_other_uses_need_the_expanded_tensor(kind: str) -> None:
    """City-block distances and additive attention are no matmul."""
    assert not graph(use("other", kind, [2]), use("sum", "Sum", [3], BIG, OUT)).rows
    beside = (use("square", "Square", [2]), SUM, use("beside", kind, [2]))
    assert not graph(*beside).rows


def test_trap_an_operand_as_large_as_the_result_is_no_expansion() -> None:
    assert not graph(use("square", "Square", [2]), SUM, left=BIG).rows


def test_gradients_of_the_expanded_size_belong_to_it() -> None:
    backward = (
        use("gradient_tape/Tile", "Tile", [4], OUT),
        use("gradient_tape/Mul", "Mul", [2, 5]),
        use("gradient_tape/Sum", "Sum", [6], BIG, LEFT),
        use("gradient_tape/sqrt", "SqrtGrad", [4], OUT, OUT),
    )
    (found,) = graph(use("square", "Square", [2]), SUM, *backward).rows
    assert {row.name for row in found.rows} == {
        "expand", "square", "sum", "gradient_tape/Tile", "gradient_tape/Mul", "gradient_tape/Sum",
    }  # fmt: skip


def test_gradients_of_products_that_take_only_their_operands_belong_to_it() -> None:
    """The gradient of a sum takes the shape of the product, and that of a product its operands."""
    small = ["float32", [64, 32]]
    backward = (
        use("gradient_tape/Tile", "Tile", [3], OUT),
        graph_operation("gradient_tape/expand/Mul", "Mul", [BIG, RIGHT], [BIG], **{"from": [4, 1]}),
        use("gradient_tape/expand/Sum", "Sum", [5], BIG, LEFT),
        graph_operation("gradient_tape/expand/Reshape", "Reshape", [LEFT], [small], **{"from": [6]}),
        use("gradient_tape/expanded/Mul", "Mul", [0, 0], LEFT, BIG),
    )
    (found,) = graph(use("sum", "Sum", [2], BIG, OUT), *backward, first="Mul").rows
    assert {row.name for row in found.rows} == {
        "expand", "sum", "gradient_tape/Tile", "gradient_tape/expand/Mul", "gradient_tape/expand/Sum",
    }  # fmt: skip


def test_trap_the_gradient_of_an_outer_product_is_not_judged() -> None:
    backward = use("gradient_tape/outer", "Mul", [0, 1])
    backward["outputs"] = [BIG]
    backward["inputs"] = [LEFT, RIGHT]
    found = graph(backward, use("sum", "Sum", [3], BIG, OUT), use("other", "Tanh", [2])).rows
    assert not found


@pytest.mark.parametrize(("weights", "number"), [([64, 64, 1], 1), ([64, 64, 32], 0)])
def test_weighted_differences_are_two_products(weights: list[int], number: int) -> None:
    """Residuals of cluster centers; weights of the expanded size are no factor of a matmul."""
    weight = graph_operation("w", "Placeholder", [], [["float32", weights]])
    times = graph_operation("times", "Mul", [["float32", weights], BIG], [BIG], **{"from": [3, 2]})
    found = graph(weight, times, use("sum", "Sum", [4], BIG, OUT)).rows
    assert len(found) == number
    assert all(one.weighted for one in found)
