"""The cases of repeated-computation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.repeated_computation import Repeat, RepeatedResults, check


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
