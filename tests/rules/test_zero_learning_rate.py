"""zero-learning-rate: both sides of the limit."""

from tests.rules.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.rules.operations.zero_learning_rate import check
from tfdoctor.rules.operations.zero_learning_rate.useless_work import UselessWork

GRADIENT = took("gradient_tape/encoder/MatMul", "MatMul", 5.0, at=script(12))
UPDATE = took("adam/Mul", "Mul", 2.0, at=script(30))
SERVING = UselessWork(("adam",), script(17), (UPDATE,), (GRADIENT,))


def example(useless: UselessWork = SERVING, total: float = 14.0) -> Verdict:
    """Half of the compute time is for the optimizer of an encoder, whose rate is 0."""
    return check(useless, training_step(total, *useless.updates, *useless.gradients))


sick = example
healthy = described("All optimizers have a rate above 0.", applied, check, UselessWork(()))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the compute time, and less"] = [
        example(replace(SERVING, gradients=(replace(GRADIENT, ms=ms),)), total=100.0) for ms in (3.0, 2.9)
    ]
    told["trap: the optimizer exists, but no step uses it"] = example(replace(SERVING, gradients=(), updates=()))


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


def test_a_run_without_traced_steps_is_healthy_where_no_rate_is_zero() -> None:
    untraced = Unavailable("no step was traced")
    assert UselessWork.measure(recording(manifest=of_run()), untraced, untraced) == UselessWork(())
    with pytest.raises(Unavailable, match="no step"):
        UselessWork.measure(recording(manifest=of_run(ADAM)), untraced, untraced)


def measured(run: Manifest, *more: Operation) -> UselessWork:
    program = Program(operations=(*GRAPH, *more))
    rows = (took(one.name, one.type, 1.0, layer=one.layer) for one in GRAPH)
    return UselessWork.measure(recording(manifest=run), Operations(tuple(rows)), Dataflow(program))


@golden_cases
def test_useless_work(told: Cases) -> None:
    def useless(name: str, run: Manifest, *more: Operation) -> None:
        def found() -> list[str]:
            one = measured(run, *more)
            rows = {"updates": one.updates, "gradients": one.gradients}
            return [
                f"at {shown(one.at)}",
                *(f"{kind}: {', '.join(row.name for row in of)}" for kind, of in rows.items()),
            ]

        told[name] = found

    useless("gradients and back-propagation that nothing else uses", of_run(ADAM))
    norm = Operation(name="norm", type="L2Loss", sources=("grad/encoder",))
    useless("trap: the norm of all gradients is written to a log", of_run(ADAM), norm)
    useless("no such optimizer", of_run())
    useless("a rate that may rise", of_run(ADAM, finished=False))
    useless("rates that were not recorded", manifest())
