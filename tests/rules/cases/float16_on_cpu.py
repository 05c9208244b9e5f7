"""The cases of float16-on-cpu: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.precision.float16_on_cpu import check


def example(
    dtype: str = "float16",
    time_ms: float = 60.0,
    kind: str = "Conv2D",
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """A float16 convolution takes 60 ms on a CPU without float16 arithmetic."""
    tensors = ((dtype, (32, 32, 32, 64)), (dtype, (3, 3, 64, 64)))
    graph = Operation(name="model/conv2d/convolution", type=kind, inputs=tensors if dtype else ())
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9), operation=graph
    )  # fmt: skip
    return check(Operations.training(70.0, row, rest="ReluGrad"), hardware, None)


sick = example


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return example("bfloat16")
