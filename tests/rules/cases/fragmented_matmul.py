"""The cases of fragmented-matmul: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.precision.fragmented_matmul import SiblingMatmuls, Siblings, check


def example(number: int = 8) -> Verdict:
    """Each of eight heads runs its own small matmul."""
    at, names = Location("train.py", 20), [f"model/head_{n}/MatMul" for n in range(number)]
    matmuls, gradients = (
        tuple(OperationTime(name=name, type="MatMul", ms=0.05, at=at) for name in some)
        for some in (names, [f"gradient_tape/{name}/MatMul_1" for name in names])
    )
    group = Siblings("model/input", (128, 16), number, (*matmuls, *gradients))
    return check(SiblingMatmuls((group,)), Operations(group.rows))


sick = example


def healthy() -> Verdict:
    """One matmul computes all heads."""
    return example(1)
