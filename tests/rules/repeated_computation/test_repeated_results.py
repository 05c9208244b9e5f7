"""What is computed again in a step: equal values of one graph, and results of constants."""

from typing import Any

import pytest

from tests.builders import chart, graph_operation, recording, trace
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.repeated_computation.repeated_results import RepeatedResults

X, W, HANDLE = ["float32", [64, 32]], ["float32", [32, 32]], ["resource", []]
QUIET = {"Placeholder", "ReadVariableOp"}


def op(name: str, kind: str, sources: list[int], line: int, **more: Any) -> Any:
    made = {"ReadVariableOp": W, "Placeholder": X}.get(kind, X)
    more = {"computes": kind, "at": ["/train.py", line]} | more
    return graph_operation(name, kind, [X] * len(sources), [made], **{"from": sources}, **more)


def call(scope: str, first: int, line: int, x: int = 0) -> list[Any]:
    """A layer that reads its weights anew in each call."""
    return [
        op(f"{scope}/read", "ReadVariableOp", [1], line),
        op(f"{scope}/MatMul", "MatMul", [x, first], line),
        op(f"{scope}/Relu", "Relu", [first + 1], line),
    ]


def measure(*graphs: list[Any], captured: tuple[str, ...] = ()) -> RepeatedResults:
    """Measure graphs whose first operations are the batch x (0) and the weights w (1); each takes 1 ms."""
    start = [
        op("x", "Placeholder", [], 1, computes=""),
        graph_operation("w", "Placeholder", [], [HANDLE]),
    ]
    record = {
        "graphs": [
            {"kind": "function", "operations": [*start, *rows], "captured": captured}
            for rows in graphs
        ]
    }
    program: Program = chart(trace([]), recording(record)).fact(Program)
    times = tuple(
        OperationTime(name=one.name, type=one.type, ms=1.0, operation=one)
        for one in program.by_name.values()
        if one.type not in QUIET
    )
    return Chart([program, Operations(times)]).fact(RepeatedResults)


def test_a_second_call_on_the_same_input_is_repeated_with_its_gradient() -> None:
    backward = [
        op(f"gradient_tape/{scope}/MatMul/MatMul", "MatMul", [5, 0], 9) for scope in ("a", "b")
    ]
    (found,) = measure([*call("a", 2, 7), *call("b", 5, 8), *backward]).repeats
    assert [row.name for row in found.rows] == ["b/MatMul", "b/Relu"]
    assert [row.name for row in found.gradients] == ["gradient_tape/b/MatMul/MatMul"]
    assert found.first
    assert found.again
    assert (found.first.line, found.again.line, found.ms) == (7, 8, 3.0)


@pytest.mark.parametrize(("others", "spared"), [(0, 1.0), (1, 1 / 3)])
def test_the_sum_of_gradients_shrinks_by_those_that_go(others: int, spared: float) -> None:
    """Of a sum of two gradients one remains, which is no sum."""
    backward = [
        op("gradient_tape/a/MatMul/MatMul", "MatMul", [5, 0], 9),
        op("gradient_tape/b/MatMul/MatMul", "MatMul", [5, 0], 9),
        op("Reshape", "Reshape", [9], 9),
        op("gradient_tape/c", "Tanh", [5], 9),
        op("AddN", "AddN", [8, 10, *[11] * others], 9),
        op("AddN_1", "AddN", [8, 11], 9),
    ]
    (found,) = measure([*call("a", 2, 7), *call("b", 5, 8), *backward]).repeats
    (added,) = found.sums
    assert added.row.name == "AddN"
    assert added.spared == pytest.approx(spared)
    assert found.ms == pytest.approx(3.0 + spared)


def test_trap_the_only_gradient_remains() -> None:
    """Generated images: the critic's step needs no gradient of the generator, which its own step computes."""
    backward = op("gradient_tape/b/MatMul/MatMul", "MatMul", [5, 0], 9)
    (found,) = measure([*call("a", 2, 7), *call("b", 5, 8), backward]).repeats
    assert found.gradients == ()


def test_trap_weights_that_are_written_between_two_calls() -> None:
    """An update between the calls, as for sharpness-aware minimization."""
    write = op("write", "AssignVariableOp", [1], 8, computes="")
    assert not measure([*call("a", 2, 7), write, *call("b", 6, 8)]).repeats


def test_trap_another_input() -> None:
    other = op("noise", "RandomUniform", [], 8, computes="")
    assert not measure([*call("a", 2, 7), other, *call("b", 6, 8, x=5)]).repeats


def test_trap_equal_names_of_inputs_in_two_functions() -> None:
    """A step for each of two networks: both call their batch x."""
    assert not measure(call("a", 2, 7), call("b", 2, 8)).repeats


def test_trap_a_gradient_computes_a_result_again_to_save_memory() -> None:
    assert not measure([*call("a", 2, 7), *call("gradient_tape/a", 5, 8)]).repeats


def test_what_depends_on_captured_tensors_only_is_constant() -> None:
    rows = [op("degree", "Sum", [0], 4), op("zeros", "Fill", [0], 5)]
    (found,) = measure(rows, captured=("x",)).constants
    assert [row.name for row in found.rows] == ["degree"]
    assert not measure(rows).constants
