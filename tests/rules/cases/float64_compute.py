"""The cases of float64-compute: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.hardware import FLOAT32_ON_AVX512
from tfdoctor.rules.precision.float64_compute import Float64Work, Origin, check


def example(dtype: str = "float64") -> Verdict:
    """A matmul of float64 arrays takes 20 of 30 ms."""
    tensor = (dtype, (256, 1024))
    inputs = (tensor, (dtype, (1024, 1024)))
    graph = Operation(name="model/MatMul", type="MatMul", inputs=inputs, outputs=(tensor,))
    row = OperationTime(name=graph.name, type="MatMul", ms=20.0, at=Location("train.py", 12), operation=graph)
    wide = (row,) if dtype == "float64" else ()
    work = Float64Work(wide, (), Origin.ARGUMENT, Location("train.py", 5))
    cpu = Hardware(DeviceKind.CPU, "example", float32=FLOAT32_ON_AVX512)
    return check(work, Operations.training(30.0, row), cpu)


sick = example


def healthy() -> Verdict:
    """The arrays are float32."""
    return example("float32")
