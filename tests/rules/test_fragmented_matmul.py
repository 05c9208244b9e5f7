"""fragmented-matmul: small matmuls that share a tensor."""

from tests.rules.kit import *
from tfdoctor.rules.precision import fragmented_matmul
from tfdoctor.rules.precision.fragmented_matmul import SiblingMatmuls, Siblings


def example(number: int = 8) -> Verdict:
    """Each of eight heads runs its own small matmul."""
    at, names = Location("train.py", 20), [f"model/head_{n}/MatMul" for n in range(number)]
    matmuls, gradients = (
        tuple(OperationTime(name=name, type="MatMul", ms=0.05, at=at) for name in some)
        for some in (names, [f"gradient_tape/{name}/MatMul_1" for name in names])
    )
    group = Siblings("model/input", (128, 16), number, (*matmuls, *gradients))
    return fragmented_matmul.check(SiblingMatmuls((group,)), Operations(group.rows))


sick = example


def healthy() -> Verdict:
    """One matmul computes all heads."""
    return example(1)


X: Any = ["float32", [512, 128]]
W: Any = ["float32", [128, 16]]
GRADIENT = OperationTime(name="gradient_tape/loss/Mul", type="Mul", ms=1.0)


def program(number: int, *, chained: bool = False, edges: bool = True) -> Program:
    """Matmuls of one tensor, each through its own reshape, or of each other's results."""
    rows = [graph_operation("x", "AddV2", [X, X], [X], **({"from": [None, None]} if edges else {}))]
    for n in range(number):
        source = 0 if not chained or not n else 2 * n
        links = ({"from": [source]}, {"from": [2 * n + 1, None]}) if edges else ({}, {})
        rows.append(graph_operation(f"r{n}", "Reshape", [X], [X], **links[0]))
        rows.append(graph_operation(f"m{n}", "MatMul", [X, W], [X], **links[1]))
    return program_of(*rows)


def check(of: Program, ms: float = 0.05, *more: OperationTime) -> Verdict:
    rows = [
        OperationTime(name=operation.name, type="MatMul", ms=ms, operation=operation)
        for operation in of.operations
        if operation.type == "MatMul"
    ]
    try:
        return Chart([of, Operations((*rows, *more, GRADIENT))]).call(fragmented_matmul.check)
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))


def test_matmuls_that_share_a_tensor_keep_the_time_of_one_call() -> None:
    gradient = OperationTime(name="gradient_tape/m0/MatMul_1", type="MatMul", ms=0.05)
    finding = as_finding(check(program(8), 0.05, gradient))
    assert len(finding.effects) == 9
    assert {(effect.scales, effect.bound) for effect in finding.effects} == {(1 / 8, Bound.AT_MOST)}


def unstacked(results: int) -> Program:
    rows = [graph_operation("unstack", "Unpack", [X], [X] * results, **{"from": [None]})]
    rows += [graph_operation(f"m{n}", "MatMul", [X, W], [X], **{"from": [0, None]}) for n in range(8)]
    return program_of(*rows)


UNNAMED = OperationTime(name="k", type="compiled or unnamed", ms=90.0)

test_both_sides_of_each_limit = each_is(
    (check(program(8, chained=True)), Healthy),  # a stack of equal layers shares nothing
    (check(program(4)), Finding),
    (check(program(3)), Healthy),  # query, key and value, by design
    (check(program(8), 0.2), Finding),
    (check(program(8), 0.21), Healthy),  # mostly arithmetic
    (check(program(8, edges=False)), NotApplicable),
    # Trap: an unrolled recurrent layer multiplies the time steps of unstack one after another
    (check(unstacked(1)), Finding),
    (check(unstacked(8)), Healthy),
    (check(program(3), 0.05, UNNAMED), NotApplicable),
)


def test_matmuls_in_the_body_of_a_loop_are_not_called_healthy() -> None:
    """Trap: the steps of a recurrent layer, whose graph is not recorded."""
    looped = OperationTime(name="MatMul", type="MatMul", ms=5.0, calls=440.0)
    verdict = as_not_applicable(check(program(1), 0.05, looped))
    assert "440" in verdict.reason
    assert "5.00 ms" in verdict.reason
    assert isinstance(check(program(8), 0.05, looped), Finding)
