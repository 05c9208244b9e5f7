"""zero-learning-rate: both sides of the limit."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.recording.agent import ZeroRate
from tfdoctor.recording.manifest import Manifest
from tfdoctor.rules.operations.zero_learning_rate import UselessWork, check

GRADIENT = OperationTime(name="gradient_tape/encoder/MatMul", type="MatMul", ms=5.0, at=Location("train.py", 12))


UPDATE = OperationTime(name="adam/Mul", type="Mul", ms=2.0, at=Location("train.py", 30))


SERVING = UselessWork(("adam",), Location("train.py", 17), (UPDATE,), (GRADIENT,))


def example(useless: UselessWork = SERVING, total: float = 14.0) -> Verdict:
    """Half of the compute time is for the optimizer of an encoder, whose rate is 0."""
    return check(useless, Operations.training(total, *useless.updates, *useless.gradients))


sick = example


def healthy() -> Verdict:
    """All optimizers have a rate above 0."""
    return example(UselessWork(()))


def test_a_twentieth_of_the_compute_time_is_found() -> None:
    rates = (replace(SERVING, gradients=(replace(GRADIENT, ms=gradient),)) for gradient in (3.0, 2.9))
    assert kinds(*(example(useless, total=20 * (3.0 + UPDATE.ms)) for useless in rates)) == [Finding, Healthy]


def test_the_operations_disappear_at_the_line_of_the_optimizer() -> None:
    finding = as_finding(example())
    assert finding.remedies[0].at == Location("train.py", 17)
    assert {one[2:] for one in effects(finding)} == {(0.0, Bound.EXPECTED)}
    assert sum(of or 0.0 for _, of, *_ in effects(finding)) == near(7.0)


def test_gradients_that_nobody_applies_are_not_in_the_graph() -> None:
    """Trap: the optimizer exists, but no step uses it."""
    unused = replace(SERVING, gradients=(), updates=())
    assert "take 0 ms" in as_healthy(example(unused)).summary


# UselessWork: what a graph computes only for the updates of an optimizer.


GRAPH = (
    Operation(name="x", type="Relu", layer="encoder"),
    Operation(name="loss", type="Mean", sources=("x",)),
    Operation(name="grad/head", type="MatMul", sources=("loss", "x")),
    Operation(name="grad/back", type="MatMul", sources=("loss",)),
    Operation(name="grad/encoder", type="MatMul", sources=("grad/back",)),
    Operation(name="adam/Mul", type="Mul", sources=("grad/encoder",), layer="adam"),
    Operation(name="adam_1/Assign", type="AssignVariableOp", sources=("adam/Mul",), layer="adam"),
    Operation(name="sgd/Assign", type="AssignVariableOp", sources=("grad/head",), layer="sgd"),
)

ADAM = ZeroRate("adam", ("/home/me/train.py", 17))


def of_run(*rates: ZeroRate, finished: bool = True) -> Manifest:
    return manifest(steps=StepsSeen(zero_rates=rates), finished=finished)


def measured(run: Manifest, *more: Operation) -> UselessWork:
    program = Program(operations=(*GRAPH, *more))
    rows = (OperationTime(name=one.name, type=one.type, ms=1.0, layer=one.layer) for one in GRAPH)
    return UselessWork.measure(recording(manifest=run), Operations(tuple(rows)), Dataflow(program))


def test_gradients_and_back_propagation_that_nothing_else_uses_are_useless() -> None:
    found = measured(of_run(ADAM))
    assert [row.name for row in found.updates] == ["adam/Mul", "adam_1/Assign"]
    assert [row.name for row in found.gradients] == ["grad/back", "grad/encoder"]
    assert found.at == Location("train.py", 17)


def test_a_gradient_that_something_else_uses_is_needed() -> None:
    """Trap: the norm of all gradients is written to a log."""
    norm = Operation(name="norm", type="L2Loss", sources=("grad/encoder",))
    found = measured(of_run(ADAM), norm)
    assert found.gradients == ()
    assert len(found.updates) == 2


def test_without_such_an_optimizer_nothing_is_useless() -> None:
    assert not measured(of_run()).updates


def test_a_rate_that_may_change_is_not_judged() -> None:
    for run, why in ((of_run(ADAM, finished=False), "may rise"), (manifest(), "does not say")):
        with pytest.raises(Unavailable, match=why):
            measured(run)
