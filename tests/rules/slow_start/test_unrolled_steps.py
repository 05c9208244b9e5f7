"""A loop in Python that makes many training steps in one graph is told from one step of many layers."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import chart, graph_operation, program_of, recording, trace
from tests.rules.cases.slow_start import example
from tfdoctor.facts.phases.run_calls import RunTraces, TracedDefinition
from tfdoctor.facts.run.program import Program
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Finding, Healthy, Location, Verdict

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


def judged(steps: int, layers: int = 3, *, function: TracedDefinition = STEP) -> Verdict:
    return example(program=program_of(*operations(steps, layers)), traces=RunTraces((function,)))


@pytest.mark.parametrize(
    ("steps", "ms", "kind"),
    [(24, 20_000.0, Finding), (10, 20_000.0, Finding), (9, 20_000.0, Healthy), (24, 2_000.0, Healthy)],
)
def test_a_graph_of_many_training_steps_starts_slowly(steps: int, ms: float, kind: type) -> None:
    """It needs no traced step: the account of the run has the time. Each step updates the weights once."""
    verdict = judged(steps, function=replace(STEP, ms=ms, first_ms=ms))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        (effect,) = verdict.run_effects
        assert (effect.phase, effect.of.value, effect.scales) == (Phase.TRACING, ms, 1 / steps)
        assert f"its graph has {steps} training steps, made at train.py:35" in verdict.summary
        assert "tf.range" in verdict.remedies[0].code


def test_many_layers_are_one_step() -> None:
    """Trap: a loop in Python makes 40 layers, so that each line makes 40 operations."""
    assert isinstance(judged(1, layers=40), Healthy)


def test_a_function_that_is_traced_again_has_one_step_in_each_graph() -> None:
    """Trap: the graphs have the same names, and each writes the same variables once."""
    graphs = [{"kind": "function", "operations": operations(1, 3)}] * 24
    program = chart(trace([]), recording({"graphs": graphs})).fact(Program)
    assert isinstance(example(program=program, traces=RunTraces((STEP,))), Healthy)


@pytest.mark.parametrize("defined", [None, Location("model.py", 28), Location("train.py", 90)])
def test_a_function_without_operations_of_its_own_lines_is_unknown(defined: Location | None) -> None:
    """Trap: the training function of Keras is not defined in the script."""
    assert isinstance(judged(24, function=replace(STEP, defined=defined)), Healthy)
