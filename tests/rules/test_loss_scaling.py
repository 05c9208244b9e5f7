"""loss-scaling: which runs must scale the loss, which do, and which are unknown."""

from tests.rules.kit import *
from tfdoctor.rules.precision.loss_scaling import check


def example(
    dtype: str = "float16", name: str = "gradient_tape/model/dense/MatMul", also: str = "",
    optimizer: str | None = "SGD", *, loss_scale: bool = False,
) -> Verdict:  # fmt: skip
    """A custom loop computes float16 gradients with a plain SGD optimizer."""
    matmul = Operation(name=name, type="MatMul", outputs=((dtype, (16, 32)),), layer="dense")
    others = (Operation(name="check", type=also),) if also else ()
    settings = RunSettings(optimizer=optimizer, loss_scale=loss_scale)
    return check(Program((matmul, *others), settings=settings))


sick = example
healthy = described("The custom loop uses a LossScaleOptimizer.", example, loss_scale=True)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["float32 and bfloat16 need no scaling"] = example("float32"), example("bfloat16")
    forward = Operation(name="backbone/MatMul", type="MatMul", outputs=(("float16", (8, 8)),))
    head = Operation(name="gradient_tape/head/MatMul", type="MatMul", outputs=(("float32", (8,)),))
    told["a frozen backbone in float16"] = check(Program((forward, head), settings=RunSettings(optimizer="SGD")))
    for kind in ("IsFinite", "IsNan", "CheckNumerics"):
        told[f"a script that checks for infinities may scale the loss: {kind}"] = example(also=kind)
    told["an unknown optimizer"] = example(optimizer=None)
    told["a graph without gradients"] = example(name="model/dense/MatMul")
