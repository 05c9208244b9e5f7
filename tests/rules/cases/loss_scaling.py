"""The cases of loss-scaling: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.precision.loss_scaling import check


def example(
    dtype: str = "float16",
    name: str = "gradient_tape/model/dense/MatMul",
    also: str = "",
    optimizer: str | None = "SGD",
    *,
    loss_scale: bool = False,
) -> Verdict:
    """A custom loop computes float16 gradients with a plain SGD optimizer."""
    matmul = Operation(name=name, type="MatMul", outputs=((dtype, (16, 32)),), layer="dense")
    others = (Operation(name="check", type=also),) if also else ()
    settings = RunSettings(optimizer=optimizer, loss_scale=loss_scale)
    return check(Program((matmul, *others), settings=settings))


sick = example


def healthy() -> Verdict:
    """The custom loop uses a LossScaleOptimizer."""
    return example(loss_scale=True)
