"""A loop in Python that makes many training steps in one graph is told from one step of many layers."""

from typing import Any

import pytest

from tests.builders import chart, graph_operation, program_of, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_traces import RunTraces, TracedDefinition
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.slow_start import UnrolledSteps
from tfdoctor.terms.verdict import Location

STEP = TracedDefinition(
    name="run_epoch", at=Location("train.py", 44), tracings=1, ms=19_000.0, first_ms=19_000.0, made=1,
    defined=Location("train.py", 28),
)  # fmt: skip


def operations(steps: int, layers: int) -> list[dict[str, Any]]:
    """A graph that updates the weights of each layer once in each step, at line 37."""
    made = [graph_operation(f"w{layer}", "Placeholder", at=["train.py", 44]) for layer in range(layers)]
    for step in range(steps):
        for layer in range(layers):
            made += [
                graph_operation(f"x{step}.{layer}", "MatMul", at=["train.py", 35]),
                graph_operation(
                    f"u{step}.{layer}", "AssignSubVariableOp", at=["train.py", 37], **{"from": [layer]}
                ),
            ]
    return [*made, graph_operation("sum", "AddV2", at=["train.py", 30])]


def measured(steps: int, layers: int = 3, *, function: TracedDefinition = STEP) -> UnrolledSteps:
    return UnrolledSteps.measure(program_of(*operations(steps, layers)), RunTraces((function,)))


def test_each_step_updates_the_weights_once() -> None:
    assert measured(24) == UnrolledSteps("run_epoch", Location("train.py", 35), 24, 19_000.0)


def test_many_layers_are_one_step() -> None:
    """Trap: a loop in Python makes 40 layers, so that each line makes 40 operations."""
    assert measured(1, layers=40).steps == 1


def test_a_function_that_is_traced_again_has_one_step_in_each_graph() -> None:
    """Trap: the graphs have the same names, and each writes the same variables once."""
    graphs = [{"kind": "function", "operations": operations(1, 3)}] * 24
    program = chart(trace([]), recording({"graphs": graphs})).fact(Program)
    assert UnrolledSteps.measure(program, RunTraces((STEP,))).steps == 1


@pytest.mark.parametrize("defined", [None, Location("model.py", 28), Location("train.py", 90)])
def test_a_function_without_operations_of_its_own_lines_is_unknown(defined: Location | None) -> None:
    """Trap: the training function of Keras is not defined in the script."""
    with pytest.raises(Unavailable, match="no line of a function"):
        measured(
            24,
            function=TracedDefinition(
                name="multi_step", at=STEP.at, tracings=1, ms=9.0, first_ms=9.0, made=1, defined=defined
            ),
        )
