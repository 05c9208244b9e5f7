"""The cases of zero-learning-rate: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.zero_learning_rate import check
from tfdoctor.rules.operations.zero_learning_rate.useless_work import UselessWork

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
