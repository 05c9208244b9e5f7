"""sparse-operand: both sides of its limits, and the three remedies."""

from tests.rules.kit import *
from tfdoctor.rules.operations.sparse_operand import SparseOperand, SparseOperands, check


def example(
    time_ms: float = 95.0, density: float = 0.002, fullest: int | None = None, *, diagonal: bool = False
) -> Verdict:
    """An adjacency matrix with 0.2 % of values takes 95 of 110 ms of compute."""
    row = took("gcn/MatMul", "MatMul", time_ms, at=script(31))
    most = max(1, round(2708 * density)) if fullest is None else fullest
    operand = SparseOperand("matrix", (2708, 2708), Zeros(1.0 - density, most, diagonal), (row,))
    return check(SparseOperands((operand,)), training_step(110.0, row))


sick = example
healthy = described("The same product with a triangular matrix, half of which are zeros.", example, density=0.5)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the compute, and less"] = example(5.5), example(5.4)
    told["a hundredth of values, and more"] = example(density=0.0099), example(density=0.011)
    told["an initial state of zeros is no sparse matrix"] = example(density=0.0, fullest=0)
    told["one value in each row is a selection"] = example(fullest=1)
    # A gradient has the line of the tape
    times = {"gradient_tape/MatMul": (1, 9.0), "MatMul": (2, 1.0), "MatMul_1": (3, 2.0)}
    rows = (
        took(name, "MatMul", ms, operation=Operation(name=name, type="MatMul", at=script(number)))
        for name, (number, ms) in times.items()
    )
    told["the slowest forward product"] = SparseOperand("x", (8, 8), Zeros(share=0.9), tuple(rows)).at
    told["values on the diagonal alone"] = example(fullest=1, diagonal=True)
    told["unnamed work is not called healthy"] = applied(check, SparseOperands(()), UNNAMED_WORK)
