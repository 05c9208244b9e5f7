"""float16-on-cpu: float16 matmuls and convolutions, priced at bfloat16's time."""

from tests.rules.kit import *
from tfdoctor.rules.precision.float16_on_cpu import Limits, check

AMX = Hardware(DeviceKind.CPU, "x", "AMX", CPU_UNITS[0][2])
REST = took("gradient_tape/relu", "ReluGrad", 50.0)


def example(
    dtype: str = "float16", time_ms: float = 60.0, kind: str = "Conv2D",
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:  # fmt: skip
    """A float16 convolution takes 60 ms on a CPU without float16 arithmetic."""
    tensors = ((dtype, (32, 32, 32, 64)), (dtype, (3, 3, 64, 64)))
    graph = Operation(name="model/conv2d/convolution", type=kind, inputs=tensors if dtype else ())
    row = OperationTime(name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=script(9), operation=graph)
    return check(training_step(70.0, row, rest="ReluGrad"), hardware, None)


sick = example
healthy = described("The convolution runs in bfloat16.", example, "bfloat16")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the time in float16 is the ceiling"] = [
        example(kind=kind, hardware=AMX) for kind in ("Conv2D", "Conv2DBackpropFilter", "MatMul")
    ]
    rows = (matmul(ms=50.0, dtype="float16"), matmul("Relu", 30.0, dtype="float16"), REST)
    told["other operations in float16 count too"] = applied(check, Operations(rows), AMX, None)
    operations = training_step(100.0, matmul(dtype="float16"))
    told["float16 is what a GPU is made for"] = applied(check, operations, Hardware(DeviceKind.GPU, "x"))
    told["a twentieth of the step, and less"] = example(time_ms=70 * Limits().share), example(time_ms=3.4)
    told["in float32, and in an unknown type"] = example("float32"), example(dtype="")
