"""The calls of layers: which line makes them, and which compute the same."""

from typing import Any

import pytest

from tests.builders import chart, graph_operation, recording, trace
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.terms.verdict import Location

X: Any = ["float32", [8, 4]]


def measured(*rows: dict[str, Any], **more: Any) -> LayerCalls:
    return of_graphs([{"kind": "function", "operations": list(rows)}], **more)


def of_graphs(graphs: list[Any], **more: Any) -> LayerCalls:
    record = {"graphs": graphs} | more
    program = chart(trace([]), recording(record)).fact(Program)
    ran = [
        OperationTime(name=one.name, type=one.type, ms=2.0, operation=one)
        for one in program.operations
        if one.type == "MatMul"
    ]
    return LayerCalls.measure(program, Operations(tuple(ran)))


def start(kind: str = "Sin", computes: str = "sin") -> list[dict[str, Any]]:
    """The batch, the variable, and a value of the batch at place 2."""
    batch = graph_operation("batch", "Placeholder", [], [X], computes="p")
    kernel = graph_operation("kernel", "Placeholder", [], [X], computes="p")
    value = graph_operation("value", kind, [X], [X], computes=computes, **{"from": [0]})
    return [batch, kernel, value]


def call(number: int, source: int, read: str = "read", **more: Any) -> list[dict[str, Any]]:
    """Two operations of the layer: the variable's value and a product."""
    name = f"net_{number}/dense_{number}"
    place = {"at": ["train.py", 22], "by": ["train.py", 30 + number], "layer": "dense"}
    at = 3 + 2 * number + more.pop("shift", 0)
    return [
        graph_operation(f"{name}/Read", "ReadVariableOp", [X], [X], computes=read, **place, **{"from": [1]}),
        graph_operation(
            f"{name}/MatMul", "MatMul", [X, X], [X], computes="mm", **place, **{"from": [source, at]}, **more
        ),
    ]


def test_calls_have_their_lines_and_their_callers() -> None:
    (layer,) = measured(*start(), *call(0, 2), *call(1, 0)).layers
    lines = [
        (Location("train.py", 22), Location("train.py", 30)),
        (Location("train.py", 22), Location("train.py", 31)),
    ]
    assert [(call.at, call.by) for call in layer.calls] == lines
    assert not layer.equal


def test_calls_on_the_same_value_are_equal() -> None:
    (layer,) = measured(*start(), *call(0, 2), *call(1, 2)).layers
    assert [one.scope for one in layer.repeated] == ["net_1/dense_1"]
    assert layer.repeated_ms == pytest.approx(2.0)


@pytest.mark.parametrize(
    "second",
    [
        call(1, 0),  # another tensor
        call(1, 2, ports=[1, 0]),  # another result of the same operation
        call(1, 2, read=""),  # a recording without attributes, or an operation whose results differ
    ],
)
def test_other_inputs_are_not_equal(second: list[dict[str, Any]]) -> None:
    (layer,) = measured(*start(), *call(0, 2), *second).layers
    assert not layer.equal


def test_a_variable_that_is_written_in_between_has_another_value() -> None:
    write = graph_operation("write", "AssignVariableOp", [X, X], [], computes="", **{"from": [1, 0]})
    (layer,) = measured(*start(), *call(0, 2), write, *call(1, 2, shift=1)).layers
    assert not layer.equal


def test_equal_values_of_different_operations_are_equal_inputs() -> None:
    """A helper that concatenates its arguments makes another operation in each call."""
    again = graph_operation("again", "Sin", [X], [X], computes="sin", **{"from": [0]})
    (layer,) = measured(*start(), *call(0, 2), again, *call(1, 5, shift=1)).layers
    assert layer.equal


def test_one_call_and_its_gradient_are_no_calls_of_interest() -> None:
    gradient = graph_operation("gradient_tape/net_0/dense_0/MatMul", "MatMul", layer="dense")
    assert not measured(*start(), *call(0, 2), gradient).layers


def scoped(name: str, kind: str = "MatMul") -> dict[str, Any]:
    return graph_operation(name, kind, [X, X], [X], layer="dense")


def test_the_scopes_of_a_loop_inside_a_call_are_no_calls() -> None:
    """Trap: TensorFlow repeats the layer's scope for the loop's own operations."""
    again = scoped("net/dense_1/while/net/dense_1/while/MatMul")
    assert measured(scoped("net/dense_1/MatMul"), again).layers == ()


def test_building_a_layer_is_no_call() -> None:
    assert measured(scoped("net/dense_1/MatMul"), scoped("net_1/build/dense/MatMul")).layers == ()


def test_a_call_whose_result_nothing_uses_is_none() -> None:
    """Keras calls a recurrent layer's cell before the loop, for the shapes."""
    before = scoped("net/dense_2/Cast", "Cast")
    assert measured(scoped("net/while/dense_1/MatMul"), before).layers == ()


def test_graphs_that_do_not_train_make_no_calls_of_the_step() -> None:
    step = [scoped("net/dense_1/MatMul"), graph_operation("gradient_tape/MatMul", "MatMul")]
    inner = {"name": "branch", "outer": "step", "operations": [scoped("cond/dense_2/MatMul")]}
    scratch = {"name": "scratch_graph", "operations": [scoped("dense_3/MatMul")]}
    graphs = [scratch, inner, {"name": "step", "outer": None, "operations": step}]
    (layer,) = of_graphs(graphs).layers
    assert [call.scope for call in layer.calls] == ["net/dense_1", "cond/dense_2"]


def test_layers_that_share_their_name_are_not_one() -> None:
    rows = scoped("net/a/dense_1/MatMul"), scoped("net/b/dense_1/MatMul")
    assert len(measured(*rows).layers) == 1
    layers = [{"name": "dense", "class": "Dense"}] * 2
    assert measured(*rows, layers=layers).layers == ()
