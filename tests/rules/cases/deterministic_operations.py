"""The cases of deterministic-operations: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.deterministic_operations import check
from tfdoctor.rules.execution.deterministic_operations.determinism import Determinism

T4 = Hardware(DeviceKind.GPU, "Tesla T4", "Tensor Core", bandwidth_bytes_s=320e9, peak_flop_s=65e12)


def example(
    *rows: OperationTime,
    time_ms: float = 60.0,
    determinism: Determinism = Determinism(by_call=True, at=Location("train.py", 5)),
    hardware: Hardware = T4,
) -> Verdict:
    """The gradient of a filter takes 60 of 70 ms, at 2 % of the peak rate of a T4."""
    kind = "Conv2DBackpropFilter"
    images = ("float16", (32, 128, 128, 64))
    graph = Operation(name=f"gradient_tape/model/conv2d/{kind}", type=kind, inputs=(images,))
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    operations = Operations.training(70.0, *(rows or (row,)), rest="ReluGrad")
    return check(determinism, operations, hardware)


sick = example


def healthy() -> Verdict:
    """Nothing asks for deterministic operations."""
    return example(determinism=Determinism())
