"""fragmented-matmul: small matmuls that share a tensor."""

from tests.rules.kit import *
from tfdoctor.rules.precision import fragmented_matmul
from tfdoctor.rules.precision.fragmented_matmul import SiblingMatmuls, Siblings

X: Any = ["float32", [512, 128]]
W: Any = ["float32", [128, 16]]
GRADIENT = took("gradient_tape/loss/Mul", "Mul", 1.0)
LOOPED = took("MatMul", "MatMul", 5.0, calls=440.0)


def example(number: int = 8) -> Verdict:
    """Each of eight heads runs its own small matmul."""
    at, names = script(20), [f"model/head_{n}/MatMul" for n in range(number)]
    matmuls, gradients = (
        tuple(took(name, "MatMul", 0.05, at=at) for name in some)
        for some in (names, [f"gradient_tape/{name}/MatMul_1" for name in names])
    )
    group = Siblings("model/input", (128, 16), number, (*matmuls, *gradients))
    return fragmented_matmul.check(SiblingMatmuls((group,)), Operations(group.rows))


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
        took(operation.name, "MatMul", ms, operation=operation)
        for operation in of.operations
        if operation.type == "MatMul"
    ]
    try:
        return Chart([of, Operations((*rows, *more, GRADIENT))]).call(fragmented_matmul.check)
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))


def unstacked(results: int) -> Program:
    rows = [graph_operation("unstack", "Unpack", [X], [X] * results, **{"from": [None]})]
    rows += [graph_operation(f"m{n}", "MatMul", [X, W], [X], **{"from": [0, None]}) for n in range(8)]
    return program_of(*rows)


sick = example
healthy = described("One matmul computes all heads.", example, 1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    gradient = took("gradient_tape/m0/MatMul_1", "MatMul", 0.05)
    told["matmuls that share a tensor keep the time of one call"] = check(program(8), 0.05, gradient)
    told["a stack of equal layers shares nothing"] = check(program(8, chained=True))
    told["four matmuls, and query, key and value, by design"] = check(program(4)), check(program(3))
    told["matmuls of 0.2 ms; longer ones are arithmetic"] = check(program(8), 0.2), check(program(8), 0.21)
    told["a recording without edges"] = check(program(8, edges=False))
    told["an unrolled recurrent layer multiplies the time steps of unstack one after another"] = check(unstacked(1))
    told[...] = check(unstacked(8))
    told["unnamed work"] = check(program(3), 0.05, replace(UNNAMED, ms=90.0))
    told["steps of an unrecorded recurrent layer are not called healthy"] = check(program(1), 0.05, LOOPED)
    told[...] = check(program(8), 0.05, LOOPED)
