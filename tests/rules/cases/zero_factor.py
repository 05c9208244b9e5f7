"""The cases of zero-factor: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.zero_factor import DroppedWork, check

GRADIENT = OperationTime(
    name="gradient_tape/backbone/conv/Conv2DBackpropFilter",
    type="Conv2DBackpropFilter",
    ms=90.0,
    at=Location("train.py", 12),
)


UPDATE = OperationTime(name="adam/Sub", type="Sub", ms=14.0, at=Location("train.py", 30))


DROPPED = DroppedWork(60, Location("train.py", 28), of_gradients=True, rows=(GRADIENT, UPDATE))


def example(dropped: DroppedWork = DROPPED, total: float = 198.0) -> Verdict:
    """The gradients of a backbone are multiplied by 0 at line 28, to freeze it."""
    return check(dropped, Operations.training(total, *dropped.rows))


sick = example


def healthy() -> Verdict:
    """No gradient is multiplied by zero."""
    return example(DroppedWork())
