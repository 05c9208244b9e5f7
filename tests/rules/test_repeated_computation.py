"""repeated-computation: when work that is done again is worth a change."""

from tests.rules.kit import *
from tfdoctor.rules.operations.repeated_computation import Constant, Repeat, RepeatedResults, check

FIRST = script(31)
AGAIN = script(9)


def example(work: RepeatedResults | None = None, rest_ms: float = 27.0) -> Verdict:
    """A model is called for the loss at line 31, and again for a metric at line 35."""
    again = (named("model_2/dense/MatMul", 9.0), named("model_2/dense/Relu", 1.0))
    found = work or RepeatedResults((Repeat(FIRST, script(35), again),))
    rows = [row for one in found.repeats for row in (*one.rows, *one.gradients)]
    rows += [row for one in found.constants for row in one.rows]
    return check(found, training_step(found.ms + rest_ms, *rows))


def named(name: str, time_ms: float) -> OperationTime:
    """Build an operation whose name ends with its type."""
    return OperationTime(name=name, type=name.rsplit("/", 1)[-1], ms=time_ms, layer="dense")


def repeated(time_ms: float) -> RepeatedResults:
    return RepeatedResults((Repeat(FIRST, AGAIN, (named("b/MatMul", time_ms),)),))


sick = example
healthy = described("The metric uses the result of the loss.", example, RepeatedResults())


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["3 % of the step, and less"] = example(repeated(3.0), 97.0), example(repeated(2.9), 97.1)
    told["a tenth of a millisecond, and less"] = example(repeated(0.1), 0.1), example(repeated(0.09), 0.1)
    again = Repeat(FIRST, AGAIN, (named("b/MatMul", 20.0),), (named("gradient_tape/b/MatMul", 30.0),))
    constant = Constant(AGAIN, (named("Sum", 10.0),))
    told["gradients and constants are ceilings"] = example(RepeatedResults((again,), (constant,)), 40.0)
    for time_ms in (0.1, 0.09):
        sums = Constant(AGAIN, (named("Sum", time_ms),))
        told[f"a constant of {time_ms} ms"] = example(RepeatedResults((), (sums,)), 0.1)
    factor = Constant(AGAIN, (named("Cholesky", 20.0),), (script(5),))
    told["variables that nothing may assign"] = example(RepeatedResults((), (factor,)), 40.0)
    lines = [script(line) for line in range(20)]
    scattered = tuple(Repeat(FIRST, line, (named(f"b{line.line}/Cast", 1.0),)) for line in lines)
    told["scattered repetitions are not named"] = example(RepeatedResults(scattered), 10.0)
    fused = Operations((named("fusion", 10.0),))
    told["operations that XLA compiled are not judged"] = applied(check, RepeatedResults(), fused)


# What is computed again in a step: equal values of one graph, and results of constants.
X, W, HANDLE = ["float32", [64, 32]], ["float32", [32, 32]], ["resource", []]
SCALE = ["float32", [8]]
QUIET = {"Placeholder", "ReadVariableOp"}


def op(name: str, kind: str, sources: list[int], line: int, **more: Any) -> Any:
    made = {"ReadVariableOp": W, "Placeholder": X}.get(kind, X)
    more = {"computes": kind, "at": ["/train.py", line]} | more
    inputs, outputs = more.pop("inputs", [X] * len(sources)), more.pop("outputs", [made])
    return graph_operation(name, kind, inputs, outputs, **{"from": sources}, **more)


def call(scope: str, first: int, line: int, x: int = 0) -> list[Any]:
    """A layer that reads its weights anew in each call."""
    return [
        op(f"{scope}/read", "ReadVariableOp", [1], line),
        op(f"{scope}/MatMul", "MatMul", [x, first], line),
        op(f"{scope}/Relu", "Relu", [first + 1], line),
    ]


def measure(
    *graphs: list[Any], captured: tuple[str, ...] = (), ran: tuple[OperationTime, ...] = ()
) -> RepeatedResults:
    """Measure graphs whose first operations are the batch x (0) and the weights w (1); each takes 1 ms."""
    start = [op("x", "Placeholder", [], 1, computes=""), graph_operation("w", "Placeholder", [], [HANDLE])]
    made = [{"kind": "function", "operations": [*start, *rows], "captured": captured} for rows in graphs]
    program: Program = chart(trace([]), recording({"graphs": made})).fact(Program)
    return Chart([program, Operations((*all_ran(program, 1.0, *QUIET), *ran))]).fact(RepeatedResults)


def twice(*rows: Any) -> list[Any]:
    return [*call("a", 2, 7), *call("b", 5, 8), *rows]


def gradient(scope: str) -> Any:
    return op(f"gradient_tape/{scope}/MatMul/MatMul", "MatMul", [5, 0], 9)


def told_of(*graphs: list[Any], **more: Any) -> list[str]:
    """What is computed again, and what is constant."""

    def names(rows: Any) -> str:
        return ", ".join(row.name for row in rows) or "nothing"

    found = measure(*graphs, **more)
    return [
        f"{shown(one.first)} again at {shown(one.again)}: {names(one.rows)}; gradients: {names(one.gradients)}"
        f"; {one.ms:.4g} ms"
        for one in found.repeats
    ] + [
        f"constant at {shown(one.at)}: {names(one.rows)}" + "; reads at ".join(["", *map(shown, one.reads)])
        for one in found.constants
    ]


def covariance(line: int = 4, **more: Any) -> list[Any]:
    """Read a second variable, of another shape than the weights, and factorize what is made of it."""
    return [
        graph_operation("scale", "Placeholder", [], [HANDLE]),
        op("scale/read", "ReadVariableOp", [2], line, direct=True, outputs=[SCALE]),
        op("Exp", "Exp", [3], line, direct=True),
        op("Cholesky", "Cholesky", [4], line + 1, **({"direct": True} | more)),
    ]


def trained(*sources: int) -> Any:
    """The optimizer's update of a variable by x."""
    return op("update", "AssignSubVariableOp", [*sources, 0], 9, computes="")


@golden_cases
def test_repeats(told: Cases) -> None:
    both = gradient("a"), gradient("b")
    told["a second call on the same input is repeated with its gradient"] = told_of(twice(*both))
    told["trap: the critic's step needs no gradient of the generator"] = told_of(twice(gradient("b")))
    write, other = (
        op("write", "AssignVariableOp", [1], 8, computes=""),
        op("noise", "RandomUniform", [], 8, computes=""),
    )
    told["trap: sharpness-aware minimization updates"] = told_of([*call("a", 2, 7), write, *call("b", 6, 8)])
    told["trap: another input"] = told_of([*call("a", 2, 7), other, *call("b", 6, 8, x=5)])
    of_port = op("b/MatMul", "MatMul", [0, 5], 8, ports=[1, 0])
    told["trap: another result of the same operation"] = told_of([*call("a", 2, 7), call("b", 5, 8)[0], of_port])
    told["trap: a batch of that name in another function"] = told_of(call("a", 2, 7), call("b", 2, 8))
    told["trap: a gradient computes it again"] = told_of([*call("a", 2, 7), *call("gradient_tape/a", 5, 8)])


@golden_cases
def test_constants(told: Cases) -> None:
    rows = [op("degree", "Sum", [0], 4), op("zeros", "Fill", [0], 5)]
    told["what depends on captured tensors only is constant"] = told_of(rows, captured=("x",))
    told["what depends on the batch is none"] = told_of(rows)
    told["what depends on variables that nothing assigns is constant"] = told_of([*covariance(), trained(1)])
    keep, call = op("keep", "AssignVariableOp", [2, 5], 9), op("call", "StatefulPartitionedCall", [2], 9)
    backward = op("gradient_tape/Cholesky/MatMul", "MatMul", [5, 5], 9)
    for name, others in (
        ("the optimizer trains it", [trained(2), trained(1)]),
        ("the step assigns it", [keep, trained(1)]),
        ("a function may assign it", [call, trained(1)]),
        ("Python may assign it: no graph assigns a weight", []),
        ("it has a gradient", [backward, trained(1)]),
    ):
        told[f"trap: a variable that may change, as {name}"] = told_of([*covariance(), *others])
    for name, shape in (("its", SCALE), ("another", X)):
        write = op("anneal", "AssignVariableOp", [1, 0], 30, inputs=[HANDLE, shape])
        told[f"another function assigns a variable of {name} shape"] = told_of([*covariance(), trained(1)], [write])
    graph = [*covariance(), op("average", "AssignVariableOp", [1, 3], 9, inputs=[HANDLE, SCALE])]
    told["a function that is traced twice assigns as it does once"] = told_of(graph, graph)
    outside = took("AssignVariableOp", "AssignVariableOp", 0.01)
    told["trap: Python assigns a factor in the traced steps"] = told_of([*covariance(), trained(1)], ran=(outside,))
    noise = op("noise", "RandomUniform", [3], 6, direct=True, computes="")
    rest = op("Mul", "Mul", [5, 6], 7, direct=True), op("Sub", "Sub", [5, 0], 8, direct=True)
    told["trap: a random result, and one of the batch"] = told_of([*covariance(), noise, *rest, trained(1)])
    told["trap: a batch norm with fixed statistics, of a layer"] = told_of([*covariance(direct=False), trained(1)])
    told["trap: the optimizer's learning rate"] = told_of([*covariance(origin=["optimizer", "Adam"]), trained(1)])
    lower = op("lower", "MatrixBandPart", [3], 4, direct=True)
    told["trap: a distribution takes the lower part of a factor that was computed before the training"] = told_of(
        [*covariance()[:2], lower, trained(1)]
    )


def backward(losses: int, *, other: bool = False) -> list[Any]:
    """Gradients of the weights from each of some losses, which a line adds; one of them also to be clipped."""
    begin = [op(f"gradient_tape/loss_{n}/Relu", "ReluGrad", [0], 7) for n in range(losses)]
    products = [op(f"gradient_tape/a/MatMul_{n}", "MatMul", [0, 2 + n], 7) for n in range(losses)]
    parts = [2 + losses + n for n in range(losses)]
    clipped = [op("Square", "Square", parts[:1], 8)] * other
    return [*begin, *products, op("AddN", "AddN", parts, 9), *clipped]


def added(*rows: Any) -> object:
    found = measure([*rows]).added
    return found.at, found.passes, found.ms, found.spared_ms


@golden_cases
def test_added_gradients(told: Cases) -> None:
    told["three losses have a product and what leads there each"] = added(*backward(3))
    told["one loss adds nothing"] = added(*backward(1))
    told["trap: a gradient that something else takes, too"] = added(*backward(3, other=True))
    same = [op("AddN", "AddN", [5, 6, 7], 7)]
    told["trap: the line that takes the gradient adds up a loop of layers"] = added(*backward(3)[:6], *same)
    forward = [op(f"b/MatMul_{n}", "MatMul", [0, 1], 7) for n in range(2)]
    told["trap: sums of what is no gradient"] = added(*forward, op("AddN", "AddN", [2, 3], 9))
    shared = [op(f"gradient_tape/a/MatMul_{n}", "MatMul", [n, 1 - n], 7) for n in range(2)]
    told["trap: a layer that is called twice has no factor in common"] = added(
        *shared, op("AddN", "AddN", [2, 3], 9)
    )
    told["the finding"] = example(replace(measure(backward(3)), repeats=()), 4.0)
