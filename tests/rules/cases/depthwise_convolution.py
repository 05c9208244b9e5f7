"""The cases of depthwise-convolution: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.depthwise_convolution import FixedConvolution, FixedKernels, check

GPU = Hardware(DeviceKind.GPU, "example", peak_flop_s=1e14, bandwidth_bytes_s=4e10)

FAST = OperationTime(name="gradient_tape/model/conv", type="Conv2D", ms=20.0, flops=7e9)


def depthwise(time_ms: float = 12.0, end: str = "", **more: Any) -> OperationTime:
    """Build a depthwise convolution of 96 channels, or one of its gradients."""
    kind = f"DepthwiseConv2dNative{end}"
    shape = (32, 64, 64, 96)
    tensors = (("float32", shape), ("float32", (3, 3, 96, 1)))
    graph = Operation(name="model/depthwise", type=kind, inputs=tensors, outputs=(("float32", shape),))
    parts: dict[str, Any] = {
        "name": graph.name, "layer": "depthwise", "at": Location("train.py", 11), "operation": graph,
        "nbytes": 1e8, "flops": 2.3e8,
    }  # fmt: skip
    return OperationTime(type=kind, ms=time_ms, **(parts | more))


def example(*rows: OperationTime, hardware: Hardware = GPU, constant: tuple[FixedConvolution, ...] = ()) -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    operations = Operations(rows or (depthwise(), FAST))
    return check(operations, hardware, FixedKernels(constant) if constant else None)


sick = example


def healthy() -> Verdict:
    """The step runs regular convolutions only."""
    return example(FAST)
