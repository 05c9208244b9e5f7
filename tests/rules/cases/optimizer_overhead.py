"""The cases of optimizer-overhead: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.optimizer_overhead import check


def example(
    *rows: OperationTime,
    number: int = 1000,
    host_ms: float = 0.0,
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:
    """A thousand small operations take a fifth of the compute time of a GPU."""
    small = [OperationTime(name=f"adam/Mul_{n}", type="Mul", ms=0.003) for n in range(number)]
    operations = Operations.training(15.0, *(rows or small))
    step = Breakdown.of(device=operations.total_ms, host=host_ms)
    return check(OptimizerWork.measure(operations), operations, hardware, step)


sick = example


def healthy() -> Verdict:
    """The optimizer runs ten small operations."""
    return example(number=10)
