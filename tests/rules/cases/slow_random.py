"""The cases of slow-random: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.slow_random import check


def example(
    kind: str = "TruncatedNormal",
    time_ms: float = 10.0,
    total_ms: float = 30.0,
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """Truncated normal noise takes a third of the compute time."""
    drawn = OperationTime(
        name=f"model/noise/{kind}", type=kind, ms=time_ms, layer="noise", at=Location("train.py", 14)
    )
    name = "gradient_tape/model/dense/MatMul"
    rest = OperationTime(name=name, type="MatMul", ms=total_ms - time_ms)
    return check(Operations((drawn, rest)), hardware)


sick = example


def healthy() -> Verdict:
    """The step draws uniform noise."""
    return example("RandomUniform", 2.0)
