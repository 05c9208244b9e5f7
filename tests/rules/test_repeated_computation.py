"""repeated-computation: when work that is done again is worth a change."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.operations import repeated_computation
from tfdoctor.rules.operations.repeated_computation import Constant, GradientSum, Repeat, RepeatedResults, check


def example(work: RepeatedResults | None = None, rest_ms: float = 27.0) -> Verdict:
    """A model is called for the loss at line 31, and again for a metric at line 35."""
    again = (named("model_2/dense/MatMul", 9.0), named("model_2/dense/Relu", 1.0))
    found = work or RepeatedResults((Repeat(FIRST, Location("train.py", 35), again),))
    rows = [row for one in found.repeats for row in (*one.rows, *one.gradients)]
    rows += [row for one in found.constants for row in one.rows]
    return check(found, Operations.training(found.ms + rest_ms, *rows))


FIRST = Location("train.py", 31)


def named(name: str, time_ms: float) -> OperationTime:
    """Build an operation whose name ends with its type."""
    return OperationTime(name=name, type=name.rsplit("/", 1)[-1], ms=time_ms, layer="dense")


sick = example


def healthy() -> Verdict:
    """The metric uses the result of the loss."""
    return example(RepeatedResults())


AGAIN = Location("train.py", 9)


def repeated(time_ms: float) -> RepeatedResults:
    return RepeatedResults((Repeat(FIRST, AGAIN, (named("b/MatMul", time_ms),)),))


def test_its_share_and_its_time_decide() -> None:
    cases = (3.0, 97.0), (2.9, 97.1), (0.1, 0.1), (0.09, 0.1)
    found = [example(repeated(time_ms), rest_ms) for time_ms, rest_ms in cases]
    assert kinds(*found) == [Finding, Healthy, Finding, Healthy]


def test_the_remedy_is_at_the_line_that_computes_again() -> None:
    (remedy,) = as_finding(example(repeated(20.0), 80.0)).remedies
    assert remedy.at == AGAIN
    assert "train.py:31" in remedy.action


def test_gradients_and_constants_are_ceilings() -> None:
    again = Repeat(FIRST, AGAIN, (named("b/MatMul", 20.0),), (named("gradient_tape/b/MatMul", 30.0),))
    constant = Constant(AGAIN, (named("Sum", 10.0),))
    found = [one[2:] for one in effects(example(RepeatedResults((again,), (constant,)), 40.0))]
    assert found == [(0.0, Bound.EXPECTED), (0.0, Bound.AT_MOST), (0.0, Bound.AT_MOST)]


def test_what_depends_on_variables_is_known_only_if_nothing_assigns_them() -> None:
    constant = Constant(AGAIN, (named("Cholesky", 20.0),), (Location("train.py", 5),))
    finding = as_finding(example(RepeatedResults((), (constant,)), 40.0))
    (remedy,) = finding.remedies
    assert remedy.at == AGAIN
    assert "assigns the variables read at train.py:5" in remedy.action
    assert "change only where Python assigns a variable" in finding.summary
    assert [effect.bound for effect in finding.effects] == [Bound.AT_MOST]


def test_a_sum_of_gradients_keeps_those_that_remain() -> None:
    again = Repeat(FIRST, AGAIN, (named("b/MatMul", 20.0),), sums=(GradientSum(named("AddN", 8.0), 0.75),))
    effect = as_finding(example(RepeatedResults((again,)), 40.0)).effects[-1]
    assert (effect.subject, effect.scales, effect.bound) == ("AddN", 0.25, Bound.AT_MOST)


def test_scattered_repetitions_are_not_named() -> None:
    lines = [Location("train.py", line) for line in range(20)]
    scattered = tuple(Repeat(FIRST, line, (named(f"b{line.line}/Cast", 1.0),)) for line in lines)
    assert isinstance(example(RepeatedResults(scattered), 10.0), Healthy)


def test_operations_that_xla_compiled_are_not_judged() -> None:
    fused = (named("fusion", 10.0),)
    assert isinstance(applied(repeated_computation, RepeatedResults(), Operations(fused)), NotApplicable)


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


def test_a_second_call_on_the_same_input_is_repeated_with_its_gradient() -> None:
    backward = [op(f"gradient_tape/{scope}/MatMul/MatMul", "MatMul", [5, 0], 9) for scope in ("a", "b")]
    (found,) = measure([*call("a", 2, 7), *call("b", 5, 8), *backward]).repeats
    assert [named.name for named in found.rows] == ["b/MatMul", "b/Relu"]
    assert [named.name for named in found.gradients] == ["gradient_tape/b/MatMul/MatMul"]
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
    assert added.spared == near(spared)
    assert found.ms == near(3.0 + spared)


def test_trap_the_only_gradient_remains() -> None:
    """Generated images: the critic's step needs no gradient of the generator, which its own step computes."""
    backward = op("gradient_tape/b/MatMul/MatMul", "MatMul", [5, 0], 9)
    (found,) = measure([*call("a", 2, 7), *call("b", 5, 8), backward]).repeats
    assert found.gradients == ()


def test_trap_what_only_looks_repeated() -> None:
    """An update between the calls, as for sharpness-aware minimization; another input; a batch of that name in
    another function; a gradient that computes a result again to save memory."""
    write, other = (
        op("write", "AssignVariableOp", [1], 8, computes=""),
        op("noise", "RandomUniform", [], 8, computes=""),
    )
    assert not measure([*call("a", 2, 7), write, *call("b", 6, 8)]).repeats
    assert not measure([*call("a", 2, 7), other, *call("b", 6, 8, x=5)]).repeats
    assert not measure(call("a", 2, 7), call("b", 2, 8)).repeats
    assert not measure([*call("a", 2, 7), *call("gradient_tape/a", 5, 8)]).repeats


def test_what_depends_on_captured_tensors_only_is_constant() -> None:
    rows = [op("degree", "Sum", [0], 4), op("zeros", "Fill", [0], 5)]
    (found,) = measure(rows, captured=("x",)).constants
    assert [named.name for named in found.rows] == ["degree"]
    assert not measure(rows).constants


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


def test_what_depends_on_variables_that_nothing_assigns_is_constant() -> None:
    first, second = measure([*covariance(), trained(1)]).constants
    assert [named.name for one in (first, second) for named in one.rows] == ["Exp", "Cholesky"]
    assert [line.line for line in second.reads] == [4]


def test_trap_a_variable_that_may_change() -> None:
    """The optimizer trains it, the step or a function assigns it, or Python does: no graph assigns a weight, or it
    has a gradient."""
    keep, call = op("keep", "AssignVariableOp", [2, 5], 9), op("call", "StatefulPartitionedCall", [2], 9)
    backward = op("gradient_tape/Cholesky/MatMul", "MatMul", [5, 5], 9)
    for others in ([trained(2), trained(1)], [keep, trained(1)], [call, trained(1)], [], [backward, trained(1)]):
        assert not measure([*covariance(), *others]).constants


def test_trap_another_function_assigns_a_variable_of_its_shape() -> None:
    write = op("anneal", "AssignVariableOp", [1, 0], 30, inputs=[HANDLE, SCALE])
    assert not measure([*covariance(), trained(1)], [write]).constants
    other = op("anneal", "AssignVariableOp", [1, 0], 30, inputs=[HANDLE, X])
    assert measure([*covariance(), trained(1)], [other]).constants


def test_a_function_that_is_traced_twice_assigns_as_it_does_once() -> None:
    graph = [*covariance(), op("average", "AssignVariableOp", [1, 3], 9, inputs=[HANDLE, SCALE])]
    assert measure(graph, graph).constants


def test_trap_python_assigns_a_variable_in_the_traced_steps() -> None:
    """An annealed factor: ``beta.assign(...)`` before each step."""
    outside = OperationTime(name="AssignVariableOp", type="AssignVariableOp", ms=0.01)
    assert not measure([*covariance(), trained(1)], ran=(outside,)).constants


def test_trap_a_random_result_and_one_of_the_batch() -> None:
    noise = op("noise", "RandomUniform", [3], 6, direct=True, computes="")
    rest = [op("Mul", "Mul", [5, 6], 7, direct=True), op("Sub", "Sub", [5, 0], 8, direct=True)]
    found = measure([*covariance(), noise, *rest, trained(1)]).constants
    assert {named.name for one in found for named in one.rows} == {"Exp", "Cholesky"}


def test_trap_a_layer_or_an_optimizer_computes_it() -> None:
    """A batch norm with fixed statistics, and a learning rate: no line of the user computes them."""
    for more in ({"direct": False}, {"origin": ["optimizer", "Adam"]}):
        (found,) = measure([*covariance(**more), trained(1)]).constants
        assert [named.name for named in found.rows] == ["Exp"]


def test_trap_the_factor_that_is_kept_is_only_moved() -> None:
    """A distribution takes the lower part of a factor that was computed before the training."""
    for kind, found in (("MatrixBandPart", 0), ("Cholesky", 1)):
        lower = op("lower", kind, [3], 4, direct=True)
        assert len(measure([*covariance()[:2], lower, trained(1)]).constants) == found
