"""float16-without-tensor-cores: slow float16 by its rate, and GPUs on which it says nothing."""

from tests.rules.kit import *
from tfdoctor.rules.precision.float16_without_tensor_cores import Limits, check

GTX_1660_TI = Hardware(
    DeviceKind.GPU, "NVIDIA GeForce GTX 1660 Ti", bandwidth_bytes_s=288e9, without_unit=True, float32_flop_s=5.4e12
)
GFLOP = 77.31
AT_LIMIT = GFLOP / 5400 / Limits().reached * 1e3


def example(
    *rows: OperationTime, dtype: str = "float16", time_ms: float = 60.0, hardware: Hardware = GTX_1660_TI
) -> Verdict:
    """A float16 convolution of 77 GFLOP takes 60 ms on a GTX 1660 Ti, which computes 5.4 TFLOP/s in float32."""
    tensors = ((dtype, (32, 128, 128, 64)), (dtype, (3, 3, 64, 128)))
    graph = Operation(name="model/conv2d/convolution", type="Conv2D", inputs=tensors)
    row = OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer="conv2d", at=script(9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    return check(training_step(70.0, *(rows or (row,)), rest="ReluGrad"), hardware, None)


def conv(ms: float, flops: float | None = 1e9) -> OperationTime:
    graph = Operation(name="c", type="Conv2D", inputs=(("float16", (1, 8, 8, 8)),))
    return took("c", "Conv2D", ms, operation=graph, flops=flops)


sick = example
healthy = described("The convolution runs in float32.", example, dtype="float32")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half of the peak in float32 reached"] = example(time_ms=AT_LIMIT / 1.01), example(time_ms=AT_LIMIT / 0.99)
    told["a twentieth of the step, and less"] = example(conv(3.51)), example(conv(3.4))
    told["unknown FLOPs"] = example(conv(60.0, None))
    told["memory-bound it counts twice the bytes: 20 ms in float32"] = example(replace(conv(60.0), nbytes=2.88e9))
    told["float16 is fast on a T4"] = example(
        hardware=replace(GTX_1660_TI, name="Tesla T4", without_unit=False, matrix_unit="Tensor Core")
    )
    told["a GPU whose rate is unknown"] = example(
        hardware=replace(GTX_1660_TI, name="Tesla K80", float32_flop_s=None)
    )
    told["an unknown GPU"] = example(hardware=Hardware(DeviceKind.GPU, missing="the trace does not name the GPU"))
    operations = training_step(100.0, conv(60.0))
    cpu = Hardware(DeviceKind.CPU, "x")
    told["a CPU is left to its own rule"] = applied(check, operations, cpu, None)
