"""The cases of unfused-elementwise: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.unfused_elementwise import check


def example(
    total: float = 10.0, number: int = 20, scope: str = "model", layer: str = "", kind: DeviceKind = DeviceKind.GPU
) -> Verdict:
    """Twenty elementwise operations take a third of the compute time of a GPU."""
    rows = [
        OperationTime(name=f"{scope}/mul_{n}", type="Mul", ms=total / number, layer=layer) for n in range(number)
    ]
    operations = Operations.training(30.0, *rows)
    program = Program(layers=(Layer(name="bn", kind="BatchNormalization"),))
    work = OptimizerWork.measure(operations)
    return check(operations, work, Hardware(kind, "example"), program)


sick = example


def healthy() -> Verdict:
    """The step runs two elementwise operations."""
    return example(1.0, 2)
