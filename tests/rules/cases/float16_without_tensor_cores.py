"""The cases of float16-without-tensor-cores: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.precision.float16_without_tensor_cores import check

GTX_1660_TI = Hardware(
    DeviceKind.GPU, "NVIDIA GeForce GTX 1660 Ti", bandwidth_bytes_s=288e9, without_unit=True, float32_flop_s=5.4e12
)


def example(
    *rows: OperationTime, dtype: str = "float16", time_ms: float = 60.0, hardware: Hardware = GTX_1660_TI
) -> Verdict:
    """A float16 convolution of 77 GFLOP takes 60 ms on a GTX 1660 Ti, which computes 5.4 TFLOP/s in float32."""
    tensors = ((dtype, (32, 128, 128, 64)), (dtype, (3, 3, 64, 128)))
    graph = Operation(name="model/conv2d/convolution", type="Conv2D", inputs=tensors)
    row = OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer="conv2d", at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    return check(Operations.training(70.0, *(rows or (row,)), rest="ReluGrad"), hardware, None)


sick = example


def healthy() -> Verdict:
    """The convolution runs in float32."""
    return example(dtype="float32")
